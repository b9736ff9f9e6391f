//! A chart as a picture: horizontal bars with their figures.

use std::path::Path;
use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::prelude::{
    BitMapBackend, Color, DrawingArea, FontStyle, IntoDrawingArea, IntoFont, RGBColor, Rectangle,
    Text,
};
use plotters::style::register_font;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::output::plain::{cut, width};

/// Fewer bars say nothing that the table does not.
const LEAST: usize = 3;
/// More do not help.
const MOST: usize = 8;
/// Pictures have twice the points that they are shown with, for sharp screens.
const SCALE: u32 = 2;
/// How wide the picture is shown.
pub const WIDTH: u32 = 612;
const FONT: &str = "steward-mail";
const STEP: u32 = 30;
const RIGHT: u32 = 80;
/// How much of a label is shown.
const LABEL: usize = 26;

const INK: RGBColor = RGBColor(0x1f, 0x29, 0x33);
const SOFT: RGBColor = RGBColor(0xee, 0xf1, 0xf4);
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
const BAR: RGBColor = RGBColor(0xd9, 0x77, 0x06);

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it stands for.
    pub label: String,
    /// How long it is.
    pub figure: f64,
    /// What stands beside it.
    pub text: String,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// PNG.
    pub png: Vec<u8>,
    /// How high it is shown.
    pub height: u32,
}

/// What a chart lacks.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The font cannot be read.
    #[error("mail.font: {0}: install DejaVu Sans (Debian: fonts-dejavu-core) or name another font")]
    Font(String),
    /// It cannot be drawn.
    #[error("a chart cannot be drawn: {0}")]
    Draw(String),
}

/// The font, read once in the life of the program.
///
/// # Errors
/// If it cannot be read or is none.
pub fn font(path: &Path) -> Result<(), ChartError> {
    // The library wants to have it for ever.
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    let load = || {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        register_font(FONT, FontStyle::Normal, Vec::leak(bytes))
            .map_err(|_| format!("{}: is no font", path.display()))
    };
    LOADED.get_or_init(load).clone().map_err(ChartError::Font)
}

/// Draws the longest bars; `None` if there are too few to be worth it. The font must be there.
///
/// # Errors
/// If it cannot be drawn.
pub fn draw(mut bars: Vec<Bar>) -> Result<Option<Picture>, ChartError> {
    bars.retain(|bar| bar.figure > 0.0 && bar.figure.is_finite());
    bars.sort_by(|a, b| b.figure.total_cmp(&a.figure));
    bars.truncate(MOST);
    let (Some(longest), true) = (bars.first().map(|bar| bar.figure), bars.len() >= LEAST) else {
        return Ok(None);
    };
    let height = STEP * u32::try_from(bars.len()).unwrap_or(0) + 8;
    let size = (WIDTH * SCALE, height * SCALE);
    let mut pixels = vec![0_u8; (size.0 * size.1 * 3) as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        paint(&area, &bars, longest).map_err(ChartError::Draw)?;
        area.present().map_err(|error| ChartError::Draw(error.to_string()))?;
    }
    let png = encoded(&pixels, size).map_err(|error| ChartError::Draw(error.to_string()))?;
    Ok(Some(Picture { png, height }))
}

/// The room for labels: what the longest needs.
fn left(bars: &[Bar]) -> u32 {
    let longest = bars.iter().map(|bar| width(&cut(&bar.label, LABEL))).max().unwrap_or(0);
    u32::try_from(longest).unwrap_or(0) * 8 + 16
}

fn paint(
    area: &DrawingArea<BitMapBackend<'_>, Shift>,
    bars: &[Bar],
    longest: f64,
) -> Result<(), String> {
    let scale = i32::try_from(SCALE).unwrap_or(1);
    let at = |x: u32, y: u32| {
        (i32::try_from(x).unwrap_or(0) * scale, i32::try_from(y).unwrap_or(0) * scale)
    };
    let wrong = |error: &dyn std::fmt::Display| error.to_string();
    area.fill(&PAPER).map_err(|error| wrong(&error))?;
    let style = |h: HPos| {
        let font = (FONT, 13 * scale).into_font().color(&INK);
        font.pos(Pos::new(h, VPos::Center))
    };
    let left = left(bars);
    let room = WIDTH - left - RIGHT;
    for (bar, row) in bars.iter().zip(0_u32..) {
        let top = row * STEP + 4;
        let long = (bar.figure / longest).clamp(0.0, 1.0) * f64::from(room);
        // A bar of next to nothing is still seen.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 560")]
        let long = long.round().max(2.0) as u32;
        let draw = |from, to, color: RGBColor| {
            let bar = Rectangle::new([from, to], color.filled());
            area.draw(&bar).map_err(|error| wrong(&error))
        };
        draw(at(left, top + 6), at(left + room, top + STEP - 6), SOFT)?;
        draw(at(left, top + 6), at(left + long, top + STEP - 6), BAR)?;
        let (label, text) = (cut(&bar.label, LABEL), bar.text.clone());
        for (text, x, h) in [(label, left - 8, HPos::Right), (text, left + room + 8, HPos::Left)] {
            let text = Text::new(text, at(x, top + STEP / 2), style(h));
            area.draw(&text).map_err(|error| wrong(&error))?;
        }
    }
    Ok(())
}

fn encoded(pixels: &[u8], (width, height): (u32, u32)) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(figures: &[f64]) -> Vec<Bar> {
        let bar =
            |figure: &f64| Bar { label: "1".to_owned(), figure: *figure, text: String::new() };
        figures.iter().map(bar).collect()
    }

    /// How many points of a row of the picture have the colour of a bar.
    fn long(png: &[u8], row: u32) -> usize {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let y = ((row * STEP + 4 + STEP / 2) * SCALE) as usize;
        let line = &pixels[y * info.line_size..(y + 1) * info.line_size];
        line.chunks(3).filter(|rgb| *rgb == [BAR.0, BAR.1, BAR.2]).count()
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let path = Path::new("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf");
        if font(path).is_err() {
            return;
        }
        assert_eq!(draw(bars(&[3.0, 0.0, 2.0, f64::NAN])).unwrap(), None, "two bars are none");
        let picture = draw(bars(&[25.0, 100.0, 50.0])).unwrap().unwrap();
        assert_eq!(picture.height, 3 * STEP + 8);
        let all = f64::from((WIDTH - left(&bars(&[1.0])) - RIGHT) * SCALE);
        for (row, share) in [(0, 1.0), (1, 0.5), (2, 0.25)] {
            let found = long(&picture.png, row) as f64;
            assert!((found - all * share).abs() <= 3.0, "{row}: {found} of {all}");
        }
    }
}
