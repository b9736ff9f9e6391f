//! The bank against scripts that stand for Slurm's commands: what they are told is written to a file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use steward_common::bank::{Kind, Level, Mechanism};
use steward_common::limit::Limit;

use super::check::Report;
use super::hold::Done;
use super::*;
use crate::shutdown::{self, Stopper};
use steward_common::bank::Units;

pub(super) struct Stage {
    pub(super) dir: tempfile::TempDir,
    pub(super) bank: Bank,
    _stopper: Stopper,
}

pub(super) fn hours(hours: i64) -> Units {
    Units::of_hours(hours).unwrap()
}

fn script(dir: &Path, name: &str, text: &str) -> Vec<String> {
    let path = dir.join(name);
    std::fs::write(&path, format!("cd {}\n{text}", dir.display())).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    vec!["sh".to_owned(), path.display().to_string()]
}

/// A cluster `dev` on which `test1` has used what the file `used` says, with limits as the file `limits` has them.
pub(super) async fn stage() -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.bank.clusters = vec!["dev".parse().unwrap()];
    config.bank.hold = Mechanism::CpuMinutes;
    config.slurm.sshare = script(
        dir.path(),
        "sshare",
        "[ -e down ] && exit 1\nused=$(cat used)\n\
         printf 'CLUSTER: dev\\nroot|||1|1|0|0|0|1|1\\n test1|||1|1|%s|0|0|1|1\\n' $used",
    );
    // A change of cpu is taken over, so that the next question sees it.
    config.slurm.sacctmgr = script(
        dir.path(),
        "sacctmgr",
        "case \"$*\" in\n*modify*)\n  [ -e refuse ] && { echo no >&2; exit 1; }\n  echo \"$*\" >> told\n  \
         case \"$*\" in *cpu=-1) : > limits ;; *cpu=*) echo \"cpu=${*##*cpu=}\" > limits ;; \
         *RawUsage=0) echo 0 > used ;; esac ;;\n\
         *withcoordinator*) cat coordinators ;;\n\
         *) printf 'dev|root||||||\\n' | sed 's/|$//'; printf 'dev|test1||root|%s||\\n' \"$(cat limits)\" ;;\nesac",
    );
    let store = Store::open(&dir.path().join("steward.db")).await.unwrap();
    std::fs::write(dir.path().join("limits"), "").unwrap();
    std::fs::write(dir.path().join("used"), "0").unwrap();
    std::fs::write(dir.path().join("coordinators"), "root|\ntest1|bob\n").unwrap();
    let (stopper, shutdown) = shutdown::channel();
    let bank = Bank::open(Arc::new(config), store, "ada".to_owned(), &shutdown).await;
    bank.insert("test1", None, Limit::At(hours(10_000))).await.unwrap();
    Stage { dir, bank, _stopper: stopper }
}

impl Stage {
    pub(super) async fn check(&self, used: i64) -> Report {
        self.write("used", &used.to_string());
        self.bank.check(Some(&["test1"])).await.unwrap()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    pub(super) fn settings(&mut self, change: impl FnOnce(&mut crate::config::Bank)) {
        self.config(|config| change(&mut config.bank));
    }

    pub(super) fn config(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = (*self.bank.config).clone();
        change(&mut config);
        self.bank.config = Arc::new(config);
    }

    /// What Slurm was told since the last question.
    fn told(&self) -> Vec<String> {
        let path = self.dir.path().join("told");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        drop(std::fs::remove_file(path));
        let set = |line: &str| line.rsplit("set ").next().unwrap_or_default().to_owned();
        text.lines().map(set).collect()
    }

    pub(super) async fn flags(&self) -> (bool, bool, bool) {
        let told = self.bank.store.account_named("test1").await.unwrap().told;
        (told.lower, told.upper, told.over)
    }

    pub(super) async fn add(&self, units: i64) -> Option<Report> {
        let plan = |account: &steward_common::bank::Account| {
            account.give(None, hours(units), Kind::Grant, None)
        };
        self.bank.change("test1", "add", plan).await.unwrap().checked.transpose().unwrap()
    }
}

#[tokio::test]
async fn b5_to_b13_levels_and_the_hold() {
    let stage = stage().await;
    assert_eq!(
        (stage.check(21_599_999).await.accounts[0].standing.level, stage.flags().await),
        (None, (false, false, false))
    );
    stage.check(21_600_000).await;
    assert_eq!(stage.flags().await, (true, false, false), "B6");
    stage.check(32_400_000).await;
    assert_eq!(stage.flags().await, (true, true, false), "B8");
    stage.check(36_000_000).await;
    assert_eq!((stage.flags().await, stage.told()), ((true, true, false), vec![]), "B10");
    let held = stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"], "B12");
    assert!(held.accounts[0].is_newly_over() && stage.flags().await.2);
    let again = stage.check(36_003_600).await;
    assert!(!again.accounts[0].is_newly_over(), "B13: said once");
    assert_eq!(
        (stage.told(), again.accounts[0].held.as_slice()),
        (vec![], &["dev".to_owned()][..])
    );
    stage.write("limits", "");
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"], "somebody took it away");
}

#[tokio::test]
async fn b14_b15_adding_releases_a_hold_of_the_bank_and_only_that() {
    let stage = stage().await;
    stage.check(39_999_960).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"]);
    // B14: still over; nothing is released.
    let over = stage.check(39_999_960).await;
    assert_eq!((over.accounts[0].standing.level, stage.told()), (Some(Level::Over), vec![]));
    let report = stage.add(2000).await.unwrap();
    assert!(matches!(report.accounts[0].done[0].1, Done::Released(Some(_))));
    assert_eq!(
        (stage.told(), stage.flags().await),
        (vec!["GrpTRESMins=cpu=-1".to_owned()], (false, true, false))
    );
    assert!(stage.bank.store.holds().await.unwrap().is_empty());
    // A hold of somebody else.
    stage.write("limits", "cpu=0");
    let foreign = stage.check(50_000_000).await;
    assert_eq!(foreign.accounts[0].done[0].1, Done::Foreign);
    assert!(stage.add(5000).await.is_none(), "nothing of the bank's");
    stage.check(50_000_000).await;
    assert_eq!(stage.told(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_change_would_lead_to_is_known_before_it() {
    let mut stage = stage().await;
    stage.check(36_003_600).await;
    stage.told();
    stage.bank.dry = true;
    let account = stage.bank.store.account_named("test1").await.unwrap();
    let today = stage.bank.today();
    for (change, releases) in [
        (account.give(None, hours(1), Kind::Grant, None).unwrap(), true),
        (account.set(None, Limit::At(hours(9_999))).unwrap(), false),
        (account.reset(today, 365).unwrap(), true),
    ] {
        let report = stage.bank.foresee(&account, &change).await.unwrap();
        let done = &report.accounts[0].done[0].1;
        let order =
            "sacctmgr -i modify account where account=test1 cluster=dev set GrpTRESMins=cpu=-1";
        assert_eq!(
            matches!(done, Done::Released(Some(found)) if found.to_string() == order),
            releases,
            "{done:?}"
        );
    }
    assert_eq!((stage.told(), stage.bank.store.holds().await.unwrap().len()), (vec![], 1));
}

#[tokio::test]
async fn a_hold_is_undone_by_one_command_whatever_was_used() {
    let stage = stage().await;
    stage.write("limits", "cpu=777");
    stage.check(36_003_600).await;
    let (done, troubles) = stage.bank.release("test1").await.unwrap();
    assert!(matches!(done[0].1, Done::Released(Some(_))), "{done:?}");
    assert_eq!(
        (stage.told(), troubles),
        (vec!["GrpTRESMins=cpu=0".to_owned(), "GrpTRESMins=cpu=777".to_owned()], vec![],)
    );
    assert!(stage.bank.store.holds().await.unwrap().is_empty());
    // It is over its limit all the same.
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"]);
}

#[tokio::test]
async fn a_limit_of_its_own_comes_back() {
    let stage = stage().await;
    stage.write("limits", "cpu=777");
    stage.check(36_003_600).await;
    stage.add(2000).await.unwrap();
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0", "GrpTRESMins=cpu=777"]);
}

#[tokio::test]
async fn a_hold_of_another_way_stays_until_it_is_released() {
    let mut stage = stage().await;
    stage.check(36_003_600).await;
    stage.settings(|bank| bank.hold = Mechanism::RunningMinutes);
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"], "no gap");
    stage.add(2000).await.unwrap();
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=-1"]);
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_neither_holds_nor_releases() {
    let stage = stage().await;
    stage.write("down", "");
    let silent = stage.check(36_003_600).await;
    assert_eq!((silent.accounts[0].standing.complete, silent.troubles.len()), (false, 1));
    assert_eq!((stage.told(), stage.flags().await), (vec![], (false, false, false)));
    std::fs::remove_file(stage.dir.path().join("down")).unwrap();
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"]);
    stage.write("down", "");
    let report = stage.add(50_000).await.unwrap();
    assert_eq!(report.accounts[0].done[0].1, Done::Kept);
    assert_eq!(stage.told(), Vec::<String>::new());
    std::fs::remove_file(stage.dir.path().join("down")).unwrap();
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=-1"]);
}

/// What sshare or sacctmgr leave out of an answer that is whole otherwise.
fn leave_out(stage: &Stage, command: &str, line: &str) {
    let path = stage.dir.path().join(command);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("out() {{\n{text}\n}}\nout \"$@\" | grep -v '{line}'; true"))
        .unwrap();
}

#[tokio::test]
async fn an_account_that_an_answer_lacks_keeps_its_hold_and_that_is_said() {
    let stage = stage().await;
    stage.write("limits", "cpu=777");
    stage.check(36_003_600).await;
    leave_out(&stage, "sacctmgr", "dev|test1");
    let report = stage.check(36_003_600).await;
    assert_eq!(report.accounts[0].done[0].1, Done::Kept);
    assert!(report.troubles[0].contains("sacctmgr does not list it"), "{:?}", report.troubles);
    let today = stage.bank.today();
    let plan = |account: &steward_common::bank::Account| account.reset(today, 365).map(Some);
    let refused = stage.bank.begin_anew("test1", "reset_usage", plan).await.unwrap_err();
    assert!(refused.to_string().contains("nothing was changed"), "{refused}");
    assert_eq!(stage.bank.store.holds().await.unwrap().len(), 1);
    // Nobody at all: that is no answer.
    leave_out(&stage, "sacctmgr", "dev|root");
    leave_out(&stage, "sshare", " test1");
    assert_eq!(stage.check(36_003_600).await.accounts[0].done[0].1, Done::Kept);
    assert_eq!(stage.bank.store.holds().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_hold_goes_with_the_account() {
    let stage = stage().await;
    stage.check(36_003_600).await;
    leave_out(&stage, "sacctmgr", "dev|test1");
    leave_out(&stage, "sshare", " test1");
    assert_eq!(stage.check(36_003_600).await.accounts[0].done[0].1, Done::Gone);
    assert!(stage.bank.store.holds().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_figure_that_sshare_leaves_out_is_said_and_no_reset_is_forgotten() {
    let stage = stage().await;
    stage.write("used", "36003600");
    stage.write("refuse", "");
    let today = stage.bank.today();
    let plan = |account: &steward_common::bank::Account| account.reset(today, 365).map(Some);
    stage.bank.begin_anew("test1", "reset_usage", plan).await.unwrap();
    std::fs::remove_file(stage.dir.path().join("refuse")).unwrap();
    let sshare = std::fs::read_to_string(stage.dir.path().join("sshare")).unwrap();
    leave_out(&stage, "sshare", " test1");
    let report = stage.check(36_003_600).await;
    assert_eq!(report.troubles.len(), 2, "the reset and the figure: {:?}", report.troubles);
    assert_eq!(stage.bank.store.resets().await.unwrap().len(), 1);
    stage.write("sshare", &sshare);
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["RawUsage=0"]);
}

#[tokio::test]
async fn what_slurm_counts_as_used_is_not_transferred() {
    let stage = stage().await;
    // The other one need not be Slurm's.
    stage.bank.insert("test2", None, Limit::At(hours(1))).await.unwrap();
    stage.write("used", "35996400");
    let refused = stage.bank.transfer("test1", "test2", hours(2)).await.unwrap_err();
    assert!(refused.to_string().contains("has 1 SUs for all clusters that nobody"), "{refused}");
    stage.write("down", "");
    let silent = stage.bank.transfer("test1", "test2", hours(1)).await.unwrap_err();
    assert!(silent.to_string().contains("nothing was changed"), "{silent}");
    std::fs::remove_file(stage.dir.path().join("down")).unwrap();
    stage.bank.transfer("test1", "test2", hours(1)).await.unwrap();
}

#[tokio::test]
async fn b19_reset_and_renewal_begin_with_no_usage() {
    let mut stage = stage().await;
    stage.check(36_003_600).await;
    let today = stage.bank.today();
    let plan = |account: &steward_common::bank::Account| account.reset(today, 365).map(Some);
    stage.write("down", "");
    let refused = stage.bank.begin_anew("test1", "reset_usage", plan).await.unwrap_err();
    assert!(refused.to_string().contains("nothing was changed"), "{refused}");
    std::fs::remove_file(stage.dir.path().join("down")).unwrap();
    stage.told();
    stage.bank.dry = true;
    let dry = stage.bank.begin_anew("test1", "reset_usage", plan).await.unwrap();
    let order = "sacctmgr -i modify account where account=test1 cluster=dev set RawUsage=0";
    assert_eq!(dry.orders.iter().map(ToString::to_string).collect::<Vec<_>>(), [order]);
    assert_eq!(stage.told(), Vec::<String>::new());
    stage.bank.dry = false;
    stage.bank.begin_anew("test1", "reset_usage", plan).await.unwrap();
    assert_eq!(stage.told(), ["RawUsage=0", "GrpTRESMins=cpu=-1"]);
    assert_eq!(stage.bank.store.resets().await.unwrap(), []);
    assert_eq!(stage.flags().await, (false, false, false));
}

#[tokio::test]
async fn what_sacctmgr_did_not_do_is_tried_again() {
    let stage = stage().await;
    stage.write("refuse", "");
    let failed = stage.check(36_003_600).await;
    assert!(matches!(failed.accounts[0].done[0].1, Done::Failed(..)));
    assert_eq!(failed.troubles.len(), 1);
    let actions = stage.bank.store.actions("test1").await.unwrap();
    assert!(actions[0].outcome.starts_with("failed"), "{actions:?}");
    std::fs::remove_file(stage.dir.path().join("refuse")).unwrap();
    stage.check(36_003_600).await;
    assert_eq!(stage.told(), ["GrpTRESMins=cpu=0"]);
}

#[tokio::test]
async fn slurm_may_have_the_limit_itself() {
    let mut stage = stage().await;
    stage.settings(|bank| bank.hold = Mechanism::Billing);
    let report = stage.check(5).await;
    assert_eq!(stage.told(), ["GrpTRESMins=billing=600000"]);
    assert_eq!(report.accounts[0].held, [""; 0], "nobody is held before it is used up");
    let view =
        async |now: Option<&check::Now>| stage.bank.views(None, now).await.unwrap().remove(0);
    let now = stage.bank.ask().await.unwrap();
    assert_eq!((view(None).await.held().count(), view(Some(&now)).await.held().count()), (0, 0));
    let report = stage.check(36_003_600).await;
    assert_eq!(report.accounts[0].held, ["dev"]);
    let now = stage.bank.ask().await.unwrap();
    assert_eq!((view(None).await.held().count(), view(Some(&now)).await.held().count()), (1, 1));
}

#[tokio::test]
async fn patterns_say_which_accounts_are_looked_at() {
    let mut stage = stage().await;
    let found = |report: Report| {
        let names: Vec<String> = report.accounts.into_iter().map(|one| one.account.name).collect();
        (names, report.unbanked)
    };
    let list = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (include, exclude, looked_at, unbanked) in [
        ("*", "root", &["test1"][..], &[][..]),
        ("*", "", &["test1"], &["root"]),
        ("te*", "", &["test1"], &[]),
        ("*", "t?st1", &[], &["root"]),
    ] {
        stage.settings(|bank| {
            (bank.include, bank.exclude) = (list(&[include]), list(&[exclude]));
        });
        let report = stage.bank.check(None).await.unwrap();
        assert_eq!(found(report), (list(looked_at), list(unbanked)), "{include} without {exclude}");
    }
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let mut stage = stage().await;
    stage.bank.dry = true;
    let report = stage.check(36_003_600).await;
    assert!(matches!(&report.accounts[0].done[0].1, Done::Held(order)
        if order.to_string() == "sacctmgr -i modify account where account=test1 cluster=dev set GrpTRESMins=cpu=0"));
    assert_eq!((stage.told(), stage.flags().await), (vec![], (false, false, false)));
    assert!(stage.bank.store.holds().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_archive_that_cannot_be_read_is_said() {
    let mut stage = stage().await;
    let archive = stage.dir.path().join("archive");
    std::fs::create_dir(&archive).unwrap();
    std::fs::write(archive.join("manifest.json"), "damaged").unwrap();
    stage.config(|config| config.archive.directory = crate::config::Location::Directory(archive));
    // What was used before today is charged.
    let start = stage.bank.today().plus(-10).unwrap();
    stage.bank.date("test1", start, None).await.unwrap();
    let troubles = stage.bank.whole_check(None).await.unwrap().troubles;
    let said = troubles.iter().any(|trouble| trouble.contains("nothing is charged"));
    assert!(said, "{troubles:?}");
}

#[tokio::test]
async fn the_end_is_enforced_only_where_that_is_wanted() {
    let mut stage = stage().await;
    let store = &stage.bank.store;
    let today = stage.bank.today();
    let start = today.plus(-400).unwrap();
    stage.bank.date("test1", start, None).await.unwrap();
    let ended = stage.bank.whole_check(None).await.unwrap();
    assert!(ended.ended.is_empty());
    assert_eq!(store.account_named("test1").await.unwrap().start, start);
    stage.settings(|bank| bank.enforce_end_date = true);
    assert!(stage.bank.whole_check(Some(&["other"])).await.unwrap().ended.is_empty());
    let ended = stage.bank.whole_check(Some(&["test1"])).await.unwrap();
    assert_eq!(ended.ended.len(), 1);
    let after = stage.bank.store.account_named("test1").await.unwrap();
    assert_eq!((after.limit(), after.start), (Limit::At(hours(1)), today));
    // Ninety days before the end, once.
    stage.bank.date("test1", today.plus(90 - 365).unwrap(), None).await.unwrap();
    assert_eq!(stage.bank.whole_check(None).await.unwrap().soon.len(), 1);
    assert_eq!(stage.bank.whole_check(None).await.unwrap().soon.len(), 0);
    assert!(stage.bank.store.account_named("test1").await.unwrap().told.end);
    assert!(stage.bank.date("test1", today.plus(1).unwrap(), None).await.is_err());
}
