//! The exporter's page, made by the real program of what Slurm 22.05 said once: no testbed needed.

use std::fs;
use std::path::Path;

use steward_common::metric::compatible;
use steward_tests::service::steward;

use crate::outputs::promtool;

/// Settings with a Slurm that prints what was recorded.
fn config(dir: &Path, more: &str) -> String {
    let fixtures = steward_tests::directory().join("fixtures/snapshot-slurm-22.05");
    let program = |name: &str, body: &str| {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\ncd {}\n{body}\n", fixtures.display())).unwrap();
        format!("{name} = [\"sh\", {:?}]\n", path.display().to_string())
    };
    let mut text = "[slurm]\n".to_owned();
    text +=
        &program("squeue", "case \"$*\" in *--json*) cat squeue.json;; *) cat squeue.txt;; esac");
    text += &program("sinfo", "cat sinfo.json");
    text += &program("sshare", "cat sshare.txt");
    text += &program("sdiag", "cat sdiag.txt");
    text += &program("sacctmgr", "echo '|physics|64|256000|10|100'");
    text += &program(
        "scontrol",
        "case \"$*\" in\n\
         *--json*) echo \"scontrol: unrecognized option '--json'\" >&2; exit 1;;\n\
         *config) echo 'ClusterName = steward';;\n\
         *partitions) cat scontrol-show-partitions.txt;;\n\
         *reservations) cat scontrol-show-reservations.txt;;\n\
         *licenses) cat scontrol-show-licenses.txt;;\nesac",
    );
    text += more;
    let file = dir.join("steward.toml");
    fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn page(more: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), more);
    let output = steward(&["--config", &config, "exporter", "--once"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// promtool wants base units and no `_total` on a gauge; names of other exporters are as they are.
#[test]
fn promtool_accepts_the_exporters_page_but_for_the_names_of_others() {
    let constants = "[exporter]\nconstants = [{ name = \"students\", value = 70 }, \
                     { name = \"gpu_years\", value = 12.5, labels = { year = \"2026\" } }]\n";
    let mila = "[exporter]\nvpenso = false\nmila = true\n";
    for (more, others) in [(constants, compatible::VPENSO), (mila, compatible::MILA)] {
        let page = page(more);
        assert!(page.contains("steward_cluster_cpus{"), "{page}");
        let complaints = promtool(&page);
        let ours: Vec<_> = complaints
            .iter()
            .filter(|line| !others.iter().any(|def| line.starts_with(&format!("{} ", def.name))))
            .collect();
        assert!(ours.is_empty(), "{ours:#?}");
        for def in others {
            // Slurm gives accounts no fair share under the algorithm that the testbed runs.
            let absent = def.name == "slurm_account_fairshare";
            assert_eq!(page.contains(&format!("{}{{", def.name)), !absent, "{}", def.name);
        }
    }
}

#[test]
fn both_vocabularies_at_once_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), "[exporter]\nmila = true\n");
    let output = steward(&["--config", &config, "config", "check"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("exporter.mila") && said.contains("exporter.vpenso = false"), "{said}");
}
