//! Whether this user sees the jobs of all users.

use std::sync::Arc;

use super::{Finding, Patient, good, note, trouble};
use crate::source::people::People;

/// Compares what slurmdbd keeps private with what this user may.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let database = match patient.database().await {
        Ok(database) => database,
        Err(why) => {
            let advice = "see that sacctmgr works as this user (slurm.sacctmgr of steward.toml); \
                          without it nobody knows whether all jobs are seen";
            return vec![trouble(why.clone(), advice)];
        }
    };
    if !database.lists("PrivateData", "jobs") {
        return vec![good("slurmdbd shows everybody the jobs of all users")];
    }
    let uid = nix::unistd::geteuid().as_raw();
    let Some(user) = People::default().name(uid).await else {
        return vec![trouble(
            format!("the system knows no name for user id {uid}"),
            "run steward as a user that has one",
        )];
    };
    let is_slurm = database.get("SlurmUser").and_then(|text| text.split('(').next());
    if uid == 0 || is_slurm == Some(user.as_str()) {
        return vec![good(format!("slurmdbd keeps jobs private, but not from {user}"))];
    }
    let arguments = ["-n", "-P", "show", "user", &user, "format=AdminLevel"];
    let level = patient.slurm(&patient.config.slurm.sacctmgr, &arguments).await;
    vec![judge(&user, level.as_deref())]
}

fn judge(user: &str, level: Result<&str, &String>) -> Finding {
    let advice =
        format!("sacctmgr modify user {user} set adminlevel=operator (or add the user first)");
    match level.map(|text| text.trim().to_ascii_lowercase()) {
        Ok(level) if level.starts_with("oper") || level.starts_with("admin") => {
            good(format!("slurmdbd keeps jobs private, but not from {user} ({level})"))
        }
        Ok(_) => trouble(
            format!(
                "slurmdbd keeps jobs private (PrivateData=jobs): {user} sees only jobs of {user}"
            ),
            advice,
        ),
        Err(why) => note(format!("slurmdbd keeps jobs private, and {why}"), advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn an_operator_sees_all_and_others_do_not() {
        assert_eq!(judge("steward", Ok("Operator\n")).mark, Mark::Good);
        assert_eq!(judge("steward", Ok("Administrator\n")).mark, Mark::Good);
        for none in ["None\n", ""] {
            let finding = judge("steward", Ok(none));
            assert_eq!(finding.mark, Mark::Trouble);
            assert!(finding.advice.unwrap().contains("adminlevel=operator"));
        }
    }
}
