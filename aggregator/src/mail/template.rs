//! Templates by language: those of the program, and what a site has instead of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, Value};

use super::letter::Template;
use super::table::{WIDTH, wrapped};
use super::words::Words;
use crate::config::LANGUAGES;
use crate::output::plain::{padded, width};

/// A directory of templates: its name, and its files.
type Shelf = (&'static str, &'static [(&'static str, &'static str)]);

macro_rules! shelf {
    ($directory:literal: $($file:literal),* $(,)?) => {
        ($directory, &[$(($file, include_str!(concat!("../../templates/", $directory, "/", $file)))),*])
    };
}

macro_rules! language {
    ($directory:literal) => {
        shelf!($directory:
            "words.toml",
            "digest.subject.j2", "digest.text.j2", "digest.html.j2",
            "copy.subject.j2", "copy.text.j2", "copy.html.j2",
            "warning.subject.j2", "warning.text.j2", "warning.html.j2",
            "cancelled.subject.j2", "cancelled.text.j2", "cancelled.html.j2",
            "proposal.subject.j2", "proposal.text.j2", "proposal.html.j2",
            "report.subject.j2", "report.text.j2", "report.html.j2",
            "trouble.subject.j2", "trouble.text.j2", "trouble.html.j2",
            "level.subject.j2", "level.text.j2", "level.html.j2",
            "held.subject.j2", "held.text.j2", "held.html.j2",
            "ending.subject.j2", "ending.text.j2", "ending.html.j2",
            "statement.subject.j2", "statement.text.j2", "statement.html.j2")
    };
}

/// What comes with the program. `base` is for all languages.
const SHELVES: [Shelf; 3] =
    [shelf!("base": "frame.text.j2", "frame.html.j2"), language!("en"), language!("fr")];

const BASE: &str = "base";
const WORDS: &str = "words.toml";

/// A template or a file of words that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct TemplateError {
    /// The file; one of the program's own begins with `built-in`.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

/// The templates of a language.
#[derive(Debug)]
pub struct Language {
    environment: Environment<'static>,
    /// Where each template is from.
    origins: BTreeMap<String, String>,
    /// Its words.
    pub words: Words,
}

/// The parts of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its subject.
    Subject,
    /// Its text.
    Text,
    /// Its page.
    Html,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Subject => "subject",
            Part::Text => "text",
            Part::Html => "html",
        }
    }
}

/// All languages.
#[derive(Debug)]
pub struct Languages(BTreeMap<String, Language>);

impl Languages {
    /// Reads them; `site` is the directory of the site's own.
    ///
    /// # Errors
    /// If a file cannot be read or is no template; names file and line.
    pub fn read(site: Option<&Path>) -> Result<Languages, TemplateError> {
        let mut names: BTreeSet<String> = LANGUAGES.map(str::to_owned).into();
        if let Some(site) = site {
            let unreadable = |error: std::io::Error| fault(site, None, &error.to_string());
            for entry in std::fs::read_dir(site).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_dir() && name != BASE {
                    names.insert(name);
                }
            }
        }
        let read = |name: String| Language::read(&name, site).map(|language| (name, language));
        names.into_iter().map(read).collect::<Result<_, _>>().map(Languages)
    }

    /// A language.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn get(&self, name: &str) -> Result<&Language, TemplateError> {
        self.0.get(name).ok_or_else(|| TemplateError {
            file: format!("{name}/"),
            line: None,
            message: "no such language: it needs a directory in mail.templates".to_owned(),
        })
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

fn fault(file: &Path, line: Option<usize>, message: &str) -> TemplateError {
    TemplateError { file: file.display().to_string(), line, message: message.replace('\n', " ") }
}

/// A file of a site: `None` if it has none of that name.
fn of_site(path: &Path) -> Result<Option<String>, TemplateError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(path, None, &error.to_string())),
    }
}

fn built_in(directory: &str, name: &str) -> Option<&'static str> {
    let (_, files) = SHELVES.iter().find(|(known, _)| *known == directory)?;
    files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

impl Language {
    fn read(language: &str, site: Option<&Path>) -> Result<Language, TemplateError> {
        let words = read_words(language, site)?;
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|name| match name.ends_with(".html.j2") {
            true => AutoEscape::Html,
            false => AutoEscape::None,
        });
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        let wrong = |error: Error| TemplateError {
            file: language.to_owned(),
            line: None,
            message: error.to_string(),
        };
        environment.set_syntax(syntax.map_err(wrong)?);
        environment.add_filter("fill", |text: String| wrapped(&text, WIDTH).join("\n"));
        environment.add_filter("underline", |text: String, with: String| {
            format!("{text}\n{}", with.repeat(width(&text).min(WIDTH)))
        });
        environment.add_filter("pad", |text: String, wide: usize| padded(&text, wide, false));
        let mut origins = BTreeMap::new();
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (directory, files) in SHELVES {
            if directory == BASE || directory == "en" {
                names.extend(files.iter().map(|(name, _)| (*name).to_owned()));
            }
        }
        names.remove(WORDS);
        for name in names {
            let (origin, text) = find(language, site, &name)?;
            environment
                .add_template_owned(name.clone(), text)
                .map_err(|error| fault(Path::new(&origin), error.line(), &said(&error)))?;
            origins.insert(name, origin);
        }
        Ok(Language { environment, origins, words })
    }

    /// One part of a mail.
    ///
    /// # Errors
    /// If the template wants what there is not.
    pub fn render(
        &self,
        template: Template,
        part: Part,
        view: &Value,
    ) -> Result<String, TemplateError> {
        let name = format!("{}.{}.j2", template.name(), part.name());
        let rendered = self.environment.get_template(&name).and_then(|it| it.render(view.clone()));
        rendered.map_err(|error| {
            // Where one template is part of another, the innermost knows the line.
            let mut innermost = &error;
            while let Some(next) = std::error::Error::source(innermost)
                .and_then(|source| source.downcast_ref::<Error>())
                .filter(|next| next.name().is_some())
            {
                innermost = next;
            }
            let at = innermost.name().unwrap_or(&name);
            let file = self.origins.get(at).map_or(at, String::as_str);
            fault(Path::new(file), innermost.line(), &said(innermost))
        })
    }
}

fn said(error: &Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}", error.kind())
}

/// A template: the site's own before the program's, the language's before those of all and English.
fn find(
    language: &str,
    site: Option<&Path>,
    name: &str,
) -> Result<(String, String), TemplateError> {
    for directory in [language, BASE, "en"] {
        if let Some(path) = site.map(|site| site.join(directory).join(name))
            && let Some(text) = of_site(&path)?
        {
            return Ok((path.display().to_string(), text));
        }
        if let Some(text) = built_in(directory, name) {
            return Ok((format!("built-in {directory}/{name}"), text.to_owned()));
        }
    }
    Err(fault(Path::new(name), None, "there is no such template"))
}

/// Words of a language on those of English, and the site's on both.
fn read_words(language: &str, site: Option<&Path>) -> Result<Words, TemplateError> {
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    for directory in ["en", language] {
        if let Some(text) = built_in(directory, WORDS) {
            texts.push((format!("built-in {directory}/{WORDS}").into(), text.to_owned()));
        }
        if let Some(path) = site.map(|site| site.join(directory).join(WORDS))
            && let Some(text) = of_site(&path)?
        {
            texts.push((path, text));
        }
    }
    let mut read: Option<(Words, toml::Table)> = None;
    for (path, text) in texts {
        let base = read.as_ref().map(|(_, table)| table);
        let words = Words::read(&text, base).map_err(|wrong| {
            let line = wrong.at.and_then(|at| text.get(..at)).map(|b| b.matches('\n').count() + 1);
            fault(&path, line, &wrong.message)
        });
        read = Some(words?);
    }
    read.map(|(words, _)| words).ok_or_else(|| fault(Path::new(WORDS), None, "there are none"))
}

#[cfg(test)]
mod tests;
