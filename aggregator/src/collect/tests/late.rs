//! What is measured comes when it comes: agents and the exporter of GPUs may answer at different
//! times, and neither costs what the other said.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use steward_common::job::AgentUse;
use steward_common::metric::{JOBS_COVERED_FROM, JOBS_COVERED_UNTIL, JOBS_CPU_USAGE_SECONDS};
use steward_common::time::Timestamp;

use super::site::{SACCT, Site};
use crate::archive::measured::measured;
use crate::archive::{Day, Part};
use crate::collect::Request;
use crate::collect::measure::Agents;
use crate::config;

/// A Prometheus that knows one job, which ran from 150 to 1050 on one GPU of n1, half of it busy.
#[derive(Default)]
struct Known {
    /// Up to when its agent watched it.
    until: AtomicI64,
    /// Whether questions about GPUs fail.
    is_blind: AtomicBool,
}

impl Known {
    fn value(&self, query: &str) -> Option<i64> {
        let about = |name: &str| query.contains(name);
        let until = self.until.load(Ordering::SeqCst);
        let value = if about("nvidia_gpu_duty_cycle") {
            match query {
                _ if about("avg_over_time") => 50,
                _ if about("max_over_time") => 20,
                _ => 30,
            }
        } else if about(JOBS_COVERED_FROM.name) {
            150
        } else if about(JOBS_COVERED_UNTIL.name) {
            until
        } else if about(JOBS_CPU_USAGE_SECONDS.name) {
            until - 150
        } else {
            return None;
        };
        Some(value)
    }

    fn answer(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut input = BufReader::new(stream);
        loop {
            let (mut length, mut line) = (0, String::new());
            while input.read_line(&mut line)? > 2 {
                let (name, value) = line.split_once(':').unwrap_or_default();
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut query = vec![0; length];
            input.read_exact(&mut query)?;
            if length == 0 {
                return Ok(());
            }
            let query = String::from_utf8(query).unwrap();
            let fails = query.contains("nvidia") && self.is_blind.load(Ordering::SeqCst);
            let status = if fails { "503 Busy" } else { "200 OK" };
            let result = self.value(&query).map(|value| {
                format!(
                    r#"{{"metric":{{"cluster":"c1","instance":"n1","slurm_job":"7","jobid":"7",
                    "minor_number":"0"}},"value":[1,"{value}"]}}"#
                )
            });
            let mut body = format!(
                r#"{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}"#,
                result.unwrap_or_default()
            );
            if fails {
                body = r#"{"status":"error","errorType":"timeout","error":"busy"}"#.to_owned();
            }
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let mut output = stream;
            output.write_all((head + &body).as_bytes())?;
        }
    }

    /// Its address.
    fn serve(self: &Arc<Known>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let known = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let known = Arc::clone(&known);
                thread::spawn(move || drop(known.answer(&stream)));
            }
        });
        format!("http://{address}")
    }
}

/// A site with that job and that Prometheus, after a collection at which this was known.
struct Watched(Site, Arc<Known>, String);

impl Watched {
    fn new(until: i64, is_blind: bool) -> Watched {
        let site = Site::new();
        let fields = "State Submit Start End NodeList AllocTRES JobName";
        site.write("sacct", &SACCT.replace("State Submit Start End JobName", fields));
        let row = "7~7~bob~COMPLETED~100@~150@~1050@~n1~cpu=1,gres/gpu=1~g~7\n";
        site.write("window", row);
        let known = Arc::new(Known::default());
        let url = known.serve();
        let watched = Watched(site, known, url);
        watched.collect(2000, until, is_blind);
        watched
    }

    /// What is known after a collection.
    fn collect(&self, now: i64, until: i64, is_blind: bool) -> AgentUse {
        let Watched(site, known, url) = self;
        known.until.store(until, Ordering::SeqCst);
        known.is_blind.store(is_blind, Ordering::SeqCst);
        let gpus = toml::from_str::<config::Gpus>("").unwrap().mapping().unwrap();
        let agents = Agents::new(url, Duration::from_secs(20), gpus).unwrap();
        let agents = Some(Arc::new(agents));
        site.collect_as(&Request { agents, ..site.request(now) });
        self.now()
    }

    fn now(&self) -> AgentUse {
        let archive = self.0.archive();
        let day = Day::of(Timestamp::new(1050));
        let entry = archive.manifest().unwrap().clusters["c1"].days[&day];
        let table = archive.open("c1", Part::Day(day), entry).unwrap().unwrap();
        measured(&table).unwrap()[&(7, Timestamp::new(100))].clone()
    }

    fn agent_rows(&self) -> usize {
        self.0.forms().iter().filter(|form| **form == "agent").count()
    }
}

fn cpu(agent: &AgentUse) -> Option<f64> {
    agent.nodes.first()?.cpu_seconds
}

#[test]
fn gpu_time_that_comes_late_is_filled_in() {
    let site = Watched::new(1050, true);
    assert_eq!((site.now().gpu_seconds, site.now().coverage), (None, Some(1.0)));
    assert_eq!(site.collect(2001, 1050, false).gpu_seconds, Some(450.0));
    assert_eq!(site.agent_rows(), 2);
    // And written no more.
    site.collect(2002, 1050, false);
    assert_eq!(site.agent_rows(), 2);
}

#[test]
fn gpu_time_that_comes_late_costs_nothing_that_agents_said() {
    let site = Watched::new(1050, true);
    let now = site.collect(2001, 600, false);
    assert_eq!((now.gpu_seconds, now.coverage, cpu(&now)), (Some(450.0), Some(1.0), Some(900.0)));
}

#[test]
fn better_figures_of_agents_cost_no_gpu_time() {
    let site = Watched::new(600, false);
    assert_eq!((site.now().gpu_seconds, site.now().coverage), (Some(450.0), Some(0.5)));
    let now = site.collect(2001, 1050, true);
    assert_eq!((now.gpu_seconds, now.coverage, cpu(&now)), (Some(450.0), Some(1.0), Some(900.0)));
    assert_eq!(site.agent_rows(), 2);
}

#[test]
fn rows_that_change_cost_nothing_that_either_said() {
    let site = Watched::new(1050, true);
    let row = "7~7~bob~COMPLETED~100@~150@~1050@~n1~cpu=1,gres/gpu=1~another~7\n";
    site.0.write("window", row);
    let now = site.collect(2001, 600, false);
    assert_eq!((now.gpu_seconds, now.coverage, cpu(&now)), (Some(450.0), Some(1.0), Some(900.0)));
    site.0.write("window", &row.replace("another", "a third"));
    let now = site.collect(2002, 1050, true);
    assert_eq!((now.gpu_seconds, now.coverage, cpu(&now)), (Some(450.0), Some(1.0), Some(900.0)));
}
