//! Slurm's settings without which a bank cannot work.

use super::Bank;
use super::slurm::Place;
use crate::source::slurm::settings::Settings;

/// Settings that are wrong, a line each, with what to do.
#[must_use]
pub fn wrong(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let value = |name: &str| settings.get(name).unwrap_or("not set").to_owned();
    let half_life = value("PriorityDecayHalfLife");
    if half_life.chars().any(|c| ('1'..='9').contains(&c)) {
        found.push(format!(
            "PriorityDecayHalfLife={half_life}: what was used fades, and an account gets more than \
             it was given; set PriorityDecayHalfLife=0"
        ));
    }
    let period = value("PriorityUsageResetPeriod");
    if !matches!(period.as_str(), "NONE" | "not set") {
        found.push(format!(
            "PriorityUsageResetPeriod={period}: Slurm forgets what was used by itself; set \
             PriorityUsageResetPeriod=NONE"
        ));
    }
    let enforce = value("AccountingStorageEnforce");
    for word in ["associations", "limits"] {
        if !settings.lists("AccountingStorageEnforce", word)
            && !settings.lists("AccountingStorageEnforce", "all")
        {
            found.push(format!(
                "AccountingStorageEnforce={enforce}: without {word} no hold holds; set \
                 AccountingStorageEnforce=associations,limits,safe"
            ));
            break;
        }
    }
    found
}

/// Whether running jobs are spared when a limit is reached.
#[must_use]
pub fn is_safe(settings: &Settings) -> bool {
    ["safe", "all"].iter().any(|word| settings.lists("AccountingStorageEnforce", word))
}

impl Bank {
    /// What is wrong with each cluster's slurm.conf, a line each; a cluster that does not answer is told elsewhere.
    pub async fn wrong_settings(&self, places: &[Place]) -> Vec<String> {
        let mut found = Vec::new();
        for place in places {
            if let Ok(settings) = self.slurm.settings(place).await {
                let line = |what| format!("slurm.conf of {}: {what}", place.name);
                found.extend(wrong(&settings).into_iter().map(line));
            }
        }
        found
    }
}

impl Bank {
    /// What a hold does to jobs on each cluster, a line each.
    ///
    /// # Errors
    /// If it is not known which cluster this is.
    pub async fn effects(&self) -> anyhow::Result<Vec<String>> {
        let mechanism = self.config.bank.hold;
        let mut lines = Vec::new();
        for place in self.slurm.clusters().await? {
            let name = &place.name;
            lines.push(match self.slurm.settings(&place).await {
                Ok(settings) => {
                    let safe = is_safe(&settings);
                    let word = if safe { "with" } else { "without" };
                    let effect = mechanism.effect(safe);
                    format!("A hold by {mechanism} on {name} ({word} safe): {effect}")
                }
                Err(why) => format!("{name} does not say how it enforces limits: {why}"),
            });
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from the testbed: see the README beside it.
    const REAL: &str =
        include_str!("../../../tests/fixtures/slurm-settings/scontrol-show-config.txt");

    fn with(name: &str, value: &str) -> Vec<String> {
        let line = REAL.lines().find(|line| line.starts_with(name)).unwrap();
        wrong(&Settings::parse(&REAL.replace(line, &format!("{name} = {value}"))))
    }

    #[test]
    fn each_wrong_line_is_named_with_the_right_one() {
        assert_eq!(wrong(&Settings::parse(REAL)), Vec::<String>::new());
        assert!(is_safe(&Settings::parse(REAL)));
        for (name, value) in [
            ("PriorityDecayHalfLife", "7-00:00:00"),
            ("PriorityUsageResetPeriod", "MONTHLY"),
            ("AccountingStorageEnforce", "associations"),
            ("AccountingStorageEnforce", "none"),
        ] {
            let found = with(name, value);
            assert_eq!(found.len(), 1, "{name}={value}: {found:?}");
            assert!(found[0].starts_with(&format!("{name}={value}: ")), "{found:?}");
            assert!(found[0].contains("set "), "{found:?}");
        }
        assert_eq!(
            with("AccountingStorageEnforce", "associations,limits,qos"),
            Vec::<String>::new()
        );
    }
}
