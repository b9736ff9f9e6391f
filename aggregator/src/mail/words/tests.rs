use steward_common::rule::RULES;

use super::*;

const EN: &str = include_str!("../../../templates/en/words.toml");
const FR: &str = include_str!("../../../templates/fr/words.toml");

fn both() -> [(&'static str, Words); 2] {
    let (en, table) = Words::read(EN, None).unwrap();
    [("en", en), ("fr", Words::read(FR, Some(&table)).unwrap().0)]
}

#[test]
fn every_rule_has_its_sentences_in_its_own_words() {
    for (language, text) in [("en", EN), ("fr", FR)] {
        let table: toml::Table = text.parse().unwrap();
        let rules = table["rules"].as_table().unwrap();
        for (rule, _) in RULES {
            let words: RuleWords = rules
                .get(*rule)
                .unwrap_or_else(|| panic!("{language}: no [rules.{rule}]"))
                .clone()
                .try_into()
                .unwrap();
            for text in [&words.title, &words.what, &words.why, &words.advice] {
                assert!(text.len() > 10, "{language} {rule}: {text:?}");
            }
        }
        assert_eq!(rules.len(), RULES.len(), "{language} speaks of rules that there are not");
    }
}

/// The figures that the sources of rules name, each with the endings that its kind may give it.
fn produced() -> Vec<String> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../common/src/rule");
    let mut keys = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if ["tests", "vectors", "sample", "finding"].contains(&name.as_str()) {
            continue;
        }
        let text = text.split("#[cfg(test)]").next().unwrap();
        for start in [".with(\"", ".with_known(\"", "=> [\""] {
            for piece in text.split(start).skip(1) {
                keys.extend(piece.split('"').next().map(str::to_owned));
            }
        }
    }
    keys.extend(["cpu_efficiency", "gpu_efficiency", "cpu_rank", "gpu_rank"].map(str::to_owned));
    keys.extend(["cpu", "gpu"].map(|of| format!("{of}_hours_below_target")));
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn every_column_has_a_french_head() {
    let [_, (_, french)] = both();
    let keys = produced();
    assert!(keys.len() > 50, "{keys:?}");
    for key in keys {
        let known = ["", "_percent", "_gib", "_hours"]
            .iter()
            .any(|ending| french.heads.contains_key(&format!("{key}{ending}")));
        assert!(known, "no French head for {key}");
    }
}

#[test]
fn sentences_name_figures_that_rules_produce() {
    let mut known = produced();
    known.extend(["n", "part", "user", "cluster"].map(str::to_owned));
    for (language, words) in both() {
        for (rule, of) in &words.rules {
            for key in sentence::keys(&of.what) {
                let bare = ["_percent", "_gib", "_hours"]
                    .iter()
                    .find_map(|ending| key.strip_suffix(ending))
                    .filter(|bare| known.iter().any(|known| known == bare));
                let is_known = bare.is_some() || known.iter().any(|known| known == key);
                assert!(is_known, "{language} {rule}: {key}");
            }
            assert!(!of.advice.contains(['{', '[']), "{language} {rule}: advice has no figures");
        }
    }
}

#[test]
fn numbers_are_written_as_the_language_does() {
    let [(_, en), (_, fr)] = both();
    for (cell, english, french) in [
        (Cell::Number(1234.5), "1,234.5", "1\u{202f}234,5"),
        (Cell::Number(0.01), "<0.1", "<0,1"),
        (Cell::Count(1_234_567), "1,234,567", "1\u{202f}234\u{202f}567"),
        (Cell::Share(0.125), "12.5", "12,5"),
        (Cell::Missing, "–", "–"),
        (Cell::text(""), "(none)", "(aucun)"),
        (Cell::text("a,b.c\u{1b}"), "a,b.c\\x1b", "a,b.c\\x1b"),
    ] {
        assert_eq!(en.cell("x", &cell, 1), english);
        assert_eq!(fr.cell("x", &cell, 1), french);
    }
    assert_eq!(fr.cell("stage", &Cell::text("cancel"), 0), "à annuler");
    assert_eq!(fr.cell("name", &Cell::text("cancel"), 0), "cancel", "a job's name stays");
}

#[test]
fn a_site_changes_single_words() {
    let (_, table) = Words::read(EN, None).unwrap();
    let own = "[rules.low-cpu]\ntitle = \"Idle cores\"\n";
    let (words, _) = Words::read(own, Some(&table)).unwrap();
    assert_eq!(words.rules["low-cpu"].title, "Idle cores");
    assert!(words.rules["low-cpu"].advice.contains("seff"));
    let fault = Words::read("decimal = \".\"\nx = ]", Some(&table)).unwrap_err();
    assert!(fault.at.is_some_and(|at| at > 12), "{fault:?}");
    assert!(Words::read("colour = \"red\"", Some(&table)).unwrap_err().message.contains("colour"));
}
