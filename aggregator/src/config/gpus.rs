//! Which exporter measures GPUs, and how its series are read.

use serde::Deserialize;
use steward_common::config::ConfigError;
use steward_common::metric::{JOB_LABEL, JOBS_GPU_ASSIGNED, NODE_LABELS};

/// What is set. `preset` gives what is not.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Gpus {
    /// Whose names hold.
    pub preset: Preset,
    /// The metric that says how busy a GPU is.
    pub utilisation: Option<String>,
    /// What its values are multiplied with to give a share from 0 to 1.
    pub utilisation_scale: Option<f64>,
    /// The metric of the memory that is used.
    pub memory_used: Option<String>,
    /// The metric of the memory that there is.
    pub memory_total: Option<String>,
    /// What memory is multiplied with to give bytes.
    pub memory_scale: Option<f64>,
    /// The label with the number of the GPU.
    pub gpu_label: Option<String>,
    /// The label with the node; a port behind it is cut off.
    pub node_label: Option<String>,
    /// The label with the cluster; empty if the series have none.
    pub cluster_label: Option<String>,
    /// The label with Slurm's number of the job.
    pub job_label: Option<String>,
    /// Or: the metric that says which job holds which GPU of which node.
    pub join: Option<String>,
}

/// Names that are known.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Those of Jobstats' exporter: `nvidia_gpu_…`.
    #[default]
    Jobstats,
    /// Those of dcgm-exporter with its mapping of HPC jobs.
    Dcgm,
    /// None: all that is needed is set here.
    Custom,
    /// GPUs are not measured.
    None,
}

/// How a series finds its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOf {
    /// By a label of its own.
    Label(String),
    /// By this metric, which has the labels `cluster`, `instance`, `slurm_job` and `gpu`.
    Join(String),
}

/// How the series of an exporter are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// How busy a GPU is.
    pub utilisation: String,
    /// To a share.
    pub utilisation_scale: f64,
    /// Memory used.
    pub memory_used: Option<String>,
    /// Memory there is.
    pub memory_total: Option<String>,
    /// To bytes.
    pub memory_scale: f64,
    /// The label of the GPU.
    pub gpu: String,
    /// The label of the node.
    pub node: String,
    /// The label of the cluster.
    pub cluster: Option<String>,
    /// How a series finds its job.
    pub job: JobOf,
}

impl Preset {
    fn mapping(self) -> Option<Mapping> {
        let text = str::to_owned;
        let [cluster, instance] = NODE_LABELS;
        match self {
            Preset::Jobstats => Some(Mapping {
                utilisation: text("nvidia_gpu_duty_cycle"),
                utilisation_scale: 0.01,
                memory_used: Some(text("nvidia_gpu_memory_used_bytes")),
                memory_total: Some(text("nvidia_gpu_memory_total_bytes")),
                memory_scale: 1.0,
                gpu: text("minor_number"),
                node: text(instance),
                cluster: Some(text(cluster)),
                job: JobOf::Label(text("jobid")),
            }),
            Preset::Dcgm => Some(Mapping {
                utilisation: text("DCGM_FI_DEV_GPU_UTIL"),
                utilisation_scale: 0.01,
                memory_used: Some(text("DCGM_FI_DEV_FB_USED")),
                memory_total: Some(text("DCGM_FI_DEV_FB_TOTAL")),
                memory_scale: 1_048_576.0,
                gpu: text("gpu"),
                node: text("Hostname"),
                cluster: None,
                job: JobOf::Label(text("hpc_job")),
            }),
            Preset::Custom | Preset::None => None,
        }
    }
}

impl Gpus {
    /// How series are read; `None` if GPUs are not measured.
    ///
    /// # Errors
    /// If it does not say how a series finds its job, or a name cannot be one.
    pub fn mapping(&self) -> Result<Option<Mapping>, ConfigError> {
        if self.preset == Preset::None {
            return Ok(None);
        }
        let refuse =
            |key: &str, message: &str| Err(ConfigError::senseless(format!("gpus.{key}"), message));
        let known = self.preset.mapping();
        let [cluster, instance] = NODE_LABELS;
        let job = match (&self.job_label, &self.join, &known) {
            (Some(_), Some(_), _) => {
                return refuse("join", "set job_label or join, not both");
            }
            (Some(label), None, _) => JobOf::Label(label.clone()),
            (None, Some(metric), _) => JobOf::Join(metric.clone()),
            (None, None, Some(known)) => known.job.clone(),
            (None, None, None) => {
                return refuse(
                    "job_label",
                    &format!(
                        "say how a series finds its job: job_label = \"jobid\", or join = \"{}\" \
                         (a metric with the labels {cluster}, {instance}, {JOB_LABEL} and gpu)",
                        JOBS_GPU_ASSIGNED.name
                    ),
                );
            }
        };
        let Some(utilisation) = self
            .utilisation
            .clone()
            .or_else(|| known.as_ref().map(|known| known.utilisation.clone()))
        else {
            return refuse("utilisation", "name the metric that says how busy a GPU is");
        };
        let known = known.as_ref();
        let or = |own: &Option<String>, known: Option<&String>, default: &str| {
            own.clone().or_else(|| known.cloned()).unwrap_or_else(|| default.to_owned())
        };
        let mapping = Mapping {
            utilisation,
            utilisation_scale: self
                .utilisation_scale
                .or(known.map(|known| known.utilisation_scale))
                .unwrap_or(0.01),
            memory_used: self.memory_used.clone().or_else(|| known?.memory_used.clone()),
            memory_total: self.memory_total.clone().or_else(|| known?.memory_total.clone()),
            memory_scale: self
                .memory_scale
                .or(known.map(|known| known.memory_scale))
                .unwrap_or(1.0),
            gpu: or(&self.gpu_label, known.map(|known| &known.gpu), "gpu"),
            node: or(&self.node_label, known.map(|known| &known.node), instance),
            cluster: match &self.cluster_label {
                Some(label) => Some(label.clone()).filter(|label| !label.is_empty()),
                None => known.and_then(|known| known.cluster.clone()),
            },
            job,
        };
        mapping.check()?;
        Ok(Some(mapping))
    }
}

impl Mapping {
    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| {
            Err(ConfigError::senseless(format!("gpus.{key}"), message))
        };
        let (label, join) = match &self.job {
            JobOf::Label(label) => (Some(label), None),
            JobOf::Join(metric) => (None, Some(metric)),
        };
        for (key, name, colons) in [
            ("utilisation", Some(&self.utilisation), true),
            ("memory_used", self.memory_used.as_ref(), true),
            ("memory_total", self.memory_total.as_ref(), true),
            ("join", join, true),
            ("gpu_label", Some(&self.gpu), false),
            ("node_label", Some(&self.node), false),
            ("cluster_label", self.cluster.as_ref(), false),
            ("job_label", label, false),
        ] {
            let Some(name) = name else { continue };
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || (colons && c == ':');
            let begins = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
            if !begins || !name.chars().all(fits) {
                let what = if colons { "a metric" } else { "a label" };
                return refuse(key, format!("{name:?} cannot be the name of {what}"));
            }
        }
        for (key, scale) in
            [("utilisation_scale", self.utilisation_scale), ("memory_scale", self.memory_scale)]
        {
            if !(scale.is_finite() && scale > 0.0) {
                return refuse(key, "must be a number above 0".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(text: &str) -> Result<Option<Mapping>, String> {
        let gpus: Gpus = toml::from_str(text).map_err(|error| error.to_string())?;
        gpus.mapping().map_err(|error| error.to_string())
    }

    #[test]
    fn jobstats_is_the_default_and_a_single_name_can_be_changed() {
        let known = mapping("").unwrap().unwrap();
        assert_eq!(known.job, JobOf::Label("jobid".to_owned()));
        let one =
            mapping("utilisation = \"nvidia_gpu_graphics_util_percent\"\nutilisation_scale = 1.0");
        let one = one.unwrap().unwrap();
        assert_eq!((one.utilisation_scale, one.gpu.as_str()), (1.0, "minor_number"));
        assert_eq!(mapping("preset = \"none\"").unwrap(), None);
        let joined = mapping("preset = \"dcgm\"\njoin = \"jobs_gpu_assigned\"").unwrap().unwrap();
        assert_eq!(joined.job, JobOf::Join("jobs_gpu_assigned".to_owned()));
        assert_eq!(joined.memory_scale, 1_048_576.0);
    }

    #[test]
    fn without_a_way_to_the_job_it_is_refused() {
        for (text, said) in [
            ("preset = \"custom\"\nutilisation = \"u\"", "gpus.job_label: say how a series finds"),
            ("preset = \"custom\"\njob_label = \"j\"", "gpus.utilisation: name the metric"),
            ("job_label = \"a\"\njoin = \"b\"", "gpus.join: set job_label or join"),
            ("utilisation = \"a{b=\\\"c\\\"}\"", "gpus.utilisation: "),
            ("gpu_label = \"1\"", "gpus.gpu_label: "),
            ("memory_scale = 0.0", "gpus.memory_scale: "),
        ] {
            let error = mapping(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
