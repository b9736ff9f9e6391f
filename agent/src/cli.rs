//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use steward_common::id::{ClusterName, NodeName};

use crate::config::{Config, ConfigError, Span};

/// Watches the Slurm jobs of this node and exports what they use to Prometheus.
#[derive(Debug, Parser)]
#[command(
    name = "steward-agent",
    version,
    after_help = "Exit codes: 0 done, 1 failed or trouble found, 2 bad configuration or usage.\n\
        Start with 'steward-agent check': it says what the agent can see on this node."
)]
pub struct Cli {
    /// Settings that hold for every command.
    #[command(flatten)]
    pub settings: Settings,
    /// What to do; 'run' if not given.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Scan, serve /metrics and push until SIGTERM or SIGINT (the default).
    Run,
    /// Print one sample in Prometheus text format and end.
    Once {
        /// Time between the two scans that rates are made from.
        #[arg(long, value_name = "TIME", default_value = "1s")]
        window: Span,
    },
    /// Say what the agent can and cannot see on this node; exits with 1 if there is trouble.
    Check {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List every metric with its unit, labels and meaning.
    Metrics {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Settings that win over the configuration file.
#[derive(Debug, Args)]
pub struct Settings {
    /// Configuration file [default: /etc/steward/agent.toml, which may be missing].
    #[arg(long, short, global = true, value_name = "FILE", env = "STEWARD_AGENT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Name of the cluster.
    #[arg(long, global = true, value_name = "NAME", env = "STEWARD_AGENT_CLUSTER")]
    pub cluster: Option<ClusterName>,
    /// Report this Slurm node only.
    #[arg(long, global = true, value_name = "NAME", env = "STEWARD_AGENT_NODE")]
    pub node: Option<NodeName>,
    /// Time between two scans, such as 15s.
    #[arg(long, global = true, value_name = "TIME", env = "STEWARD_AGENT_INTERVAL")]
    pub interval: Option<Span>,
    /// For how many intervals an ended job stays visible.
    #[arg(long, global = true, value_name = "COUNT", env = "STEWARD_AGENT_LINGER")]
    pub linger: Option<u32>,
    /// Address for /metrics and /healthz.
    #[arg(long, global = true, value_name = "ADDRESS", env = "STEWARD_AGENT_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Do not listen.
    #[arg(long, global = true)]
    pub no_listen: bool,
    /// Pushgateway to push to, such as http://127.0.0.1:9091.
    #[arg(long, global = true, value_name = "URL", env = "STEWARD_AGENT_PUSH")]
    pub push: Option<String>,
    /// File for what a restarted agent must know.
    #[arg(long, global = true, value_name = "FILE", env = "STEWARD_AGENT_STATE")]
    pub state: Option<PathBuf>,
    /// What to log: error, warn, info, debug, trace or off.
    #[arg(long, global = true, value_name = "LEVEL", env = "STEWARD_AGENT_LOG")]
    pub log: Option<String>,
}

impl Settings {
    /// The file's settings with those of the command line and the environment on top.
    ///
    /// # Errors
    /// If the file is missing, malformed or senseless.
    pub fn load(&self) -> Result<Config, ConfigError> {
        let mut config = Config::load(self.config.as_deref())?;
        config.push.gateway = self.push.clone().or(config.push.gateway);
        config.cluster = self.cluster.clone().or(config.cluster);
        config.node = self.node.clone().or(config.node);
        config.interval = self.interval.unwrap_or(config.interval);
        config.linger = self.linger.unwrap_or(config.linger);
        config.scrape.listen = self.listen.unwrap_or(config.scrape.listen);
        config.scrape.enabled &= !self.no_listen;
        config.paths.state = self.state.clone().unwrap_or(config.paths.state);
        config.log = self.log.clone().unwrap_or(config.log);
        config.check()?;
        Ok(config)
    }
}
