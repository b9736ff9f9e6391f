use super::*;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("steward.toml"), text).map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(parse("").unwrap(), Config::default());
    Config::default().check().unwrap();
}

#[test]
fn an_unknown_key_is_named_with_line_and_column() {
    let message = parse("log = \"info\"\n[serve]\n  lisen = \"127.0.0.1:1\"\n").unwrap_err();
    assert!(message.starts_with("steward.toml:3:3: "), "{message}");
    assert!(message.contains("lisen") && message.contains("listen"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn a_wrong_value_is_named_with_line_and_column() {
    for (text, at) in [
        ("time_zone = \"Europe/Atlantis\"\n", "steward.toml:1:13: "),
        ("[collect]\nschedule = \"61 * * * *\"\n", "steward.toml:2:12: "),
        ("[collect]\noverlap = 1\n", "steward.toml:2:11: "),
        ("[archive]\ndirectory = \"gs://a/b\"\n", "steward.toml:2:13: "),
        ("[archive]\nretention_raw = \"5 years\"\n", "steward.toml:2:17: "),
        ("[slurm]\nclusters = [\"a b\"]\n", "steward.toml:2:12: "),
        ("[serve]\nsocket_mode = \"0999\"\n", "steward.toml:2:15: "),
        ("[groups]\nsource = \"ldap\"\n", "steward.toml:2:10: "),
        (
            "[serve]\nlisten = \"localhost\"\n",
            "steward.toml:2:10: serve.listen: \"localhost\" is no IP address with a port, such as 127.",
        ),
        ("[slurm]\nparallel = -1\n", "steward.toml:2:12: "),
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with(at), "{text:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn senseless_values_are_refused_by_key() {
    for (text, key) in [
        ("log = \"loud\"", "log"),
        ("[archive]\ndirectory = \"archive\"", "archive.directory"),
        ("[archive]\nretention_raw = \"0s\"", "archive.retention_raw"),
        ("[archive]\nretention_processed = \"1h\"", "archive.retention_processed"),
        ("[archive.s3]\naccess_key_file = \"/k\"", "archive.s3"),
        ("[archive.s3]\nendpoint = \"minio:9000\"", "archive.s3.endpoint"),
        ("[slurm]\nsacct = []", "slurm.sacct"),
        ("[slurm]\nsacctmgr = [\"\"]", "slurm.sacctmgr"),
        ("[slurm]\nparallel = 0", "slurm.parallel"),
        ("[slurm]\nretries = 1000", "slurm.retries"),
        ("[slurm]\ntimeout = \"0s\"", "slurm.timeout"),
        ("[collect]\noverlap = \"40d\"", "collect.overlap"),
        ("[collect]\ngrace = \"18446744073709551615s\"", "collect.grace"),
        ("[collect]\ndays = 4000000000", "collect.days"),
        ("[prometheus]\nurl = \"localhost:9090\"", "prometheus.url"),
        ("[prometheus]\ntimeout = \"2h\"", "prometheus.timeout"),
        ("[pushgateway]\nurl = \"ftp://a\"", "pushgateway.url"),
        ("[pushgateway]\nstale_after = \"500ms\"", "pushgateway.stale_after"),
        ("[groups]\nsource = \"config\"", "groups.members"),
        ("[exporter]\nvpenso = true\nmila = true", "exporter.mila"),
        ("[exporter]\ninterval = \"0s\"", "exporter.interval"),
        ("[exporter]\nshare = 0", "exporter.share"),
        ("[slurm]\nsqueue = []", "slurm.squeue"),
        (
            "[exporter]\nconstants = [{ name = \"a\", value = 1, labels = { name = \"b\" } }]",
            "exporter.constants",
        ),
        (
            "[exporter]\nconstants = [{ name = \"a\", value = 1 }, { name = \"a\", value = 2 }]",
            "exporter.constants",
        ),
        ("[serve]\nsocket = \"steward.sock\"", "serve.socket"),
        ("[serve]\nstate = \"\"", "serve.state"),
        ("[store]\npath = \"steward.db\"", "store.path"),
        ("[store]\npath = \"/a.db\"\nurl = \"postgres://db/steward\"", "store.url"),
        ("[store]\npassword_file = \"/a\"", "store.password_file"),
        ("[store]\nretention_states = \"1m\"", "store.retention_states"),
    ] {
        let message = parse(text).unwrap().check().unwrap_err().to_string();
        assert!(message.starts_with(&format!("{key}: ")), "{text:?}: {message}");
    }
}

#[test]
fn a_senseless_value_is_told_with_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.toml");
    std::fs::write(&path, "[slurm]\nsacct = []\n").unwrap();
    let message = Config::load(Some(&path)).unwrap_err().to_string();
    assert_eq!(message, format!("{}: slurm.sacct: must name a program", path.display()));
}

#[test]
fn a_password_in_the_address_of_the_store_is_refused_and_not_repeated() {
    let error = parse("[store]\nurl = \"postgres://steward:s3cret@db/steward\"").unwrap_err();
    let message = error.to_string();
    assert!(message.contains("password_file") && !message.contains("s3cret"), "{message}");
}

#[test]
fn groups_come_from_members_where_there_are_any_else_from_accounts() {
    assert_eq!(Config::default().groups.source(), GroupSource::Account);
    let config = parse("[groups.members]\nphysics = [\"alice\", \"bob\"]\n").unwrap();
    assert_eq!(config.groups.source(), GroupSource::Config);
    let config = parse("[groups]\nsource = \"unix\"\n").unwrap();
    assert_eq!(config.groups.source(), GroupSource::Unix);
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let error = Config::load(Some(Path::new("/nonexistent/steward.toml"))).unwrap_err();
    assert!(error.to_string().starts_with("/nonexistent/steward.toml: "), "{error}");
}

/// The example names every key at its default; a commented key is one that has none.
#[test]
fn the_example_file_shows_every_key_at_its_default() {
    let text = include_str!("../../../deploy/config/steward.toml");
    assert_eq!(parse(text).unwrap(), Config::default());
    let set: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    parse(&set).unwrap().check().unwrap();
    let set: toml::Table = set.parse().unwrap();
    for key in keys_of("") {
        assert!(set.contains_key(&key), "{key} is missing in deploy/config/steward.toml");
        // Its tables have names and no defaults; they have a test of their own.
        if key == "outlets" {
            continue;
        }
        for inner in keys_of(&format!("[{key}]\n")) {
            // They stand in a sentence there: they cannot be set beside gpus.job_label and store.path.
            if ["join", "url", "password_file"].contains(&inner.as_str())
                && ["gpus", "store"].contains(&key.as_str())
            {
                continue;
            }
            let table = set[&key].as_table().unwrap();
            assert!(table.contains_key(&inner), "{key}.{inner} is missing there");
            for innermost in keys_of(&format!("[{key}.{inner}]\n")) {
                let table = table[&inner].as_table().unwrap();
                assert!(table.contains_key(&innermost), "{key}.{inner}.{innermost} is missing");
            }
        }
    }
}

fn is_setting(line: &str) -> bool {
    line.split_once(" = ")
        .is_some_and(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// The keys that a section takes, from its own complaint about one that it does not take.
fn keys_of(section: &str) -> Vec<String> {
    match parse(&format!("{section}no_such_key = 1")) {
        Err(message) if message.contains("unknown field") => {
            let (_, list) = message.split_once("expected").unwrap();
            list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn every_section_is_strict() {
    for key in keys_of("") {
        // The names of rules are free; their options have a test of their own.
        if !["time_zone", "log", "rules"].contains(&key.as_str()) {
            assert!(!keys_of(&format!("[{key}]\n")).is_empty(), "{key} takes unknown keys");
        }
    }
    assert!(!keys_of("[archive.s3]\n").is_empty());
}
