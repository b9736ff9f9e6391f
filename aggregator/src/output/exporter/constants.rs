//! Values of the configuration, and what was used of them.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use steward_common::exposition::{Number, header, label};
use steward_common::metric::cluster as metric;

use super::leaf::{Leaf, bind};
use crate::config::Constant;

/// GPU-years that jobs held, by cluster and year.
pub type Years = BTreeMap<(String, i16), f64>;

/// `steward_constant`; nothing if there is none.
///
/// # Errors
/// Never, while memory lasts.
pub fn constants(all: &[Constant]) -> Result<String, fmt::Error> {
    let mut text = String::new();
    if all.is_empty() {
        return Ok(text);
    }
    header(&mut text, &metric::CONSTANT)?;
    for constant in all {
        text.push_str(metric::CONSTANT.name);
        label(&mut text, '{', "name", &constant.name);
        for (name, value) in &constant.labels {
            label(&mut text, ',', name, value);
        }
        writeln!(text, "}} {}", Number(constant.value))?;
    }
    Ok(text)
}

/// `steward_gpu_years_used`.
///
/// # Errors
/// Never, while memory lasts.
pub fn years(used: &Years) -> Result<String, fmt::Error> {
    let mut leaf = Leaf::default();
    for ((cluster, year), value) in used {
        leaf.put(&metric::GPU_YEARS, &[cluster, &year.to_string()], *value)?;
    }
    bind(&[&leaf])
}
