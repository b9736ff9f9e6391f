//! Killed at any moment: ledger and Slurm agree after the next run.

use std::time::{Duration, Instant};

use steward_tests::bank::{Account, Bank};
use steward_tests::testbed::{Testbed, USERS};
use steward_tests::wait;

const PATIENCE: Duration = Duration::from_secs(150);

/// Moments at which the program is killed.
const KILLS: u32 = 100;

const SETTINGS: &str = "default_allocation = 0\nat_limit = \"inclusive\"";

/// Before and after sacctmgr changed something, whoever called it is killed if a file says so; it may also refuse.
const SCRIPT: &str = r#"case "$*" in *modify*) ;; *) exec sacctmgr "$@" ;; esac
[ -e refuse ] && { echo 'refused, as ordered' >&2; exit 1; }
[ -e before ] && { rm before; kill -9 $PPID; exit 1; }
sacctmgr "$@"
code=$?
[ -e after ] && { rm after; kill -9 $PPID; }
exit $code"#;

/// What is killed.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A check that holds.
    Check,
    /// The end of a hold.
    Release,
    /// A new proposal of an account that is held.
    Renewal,
}

const ACTS: [Act; 3] = [Act::Check, Act::Release, Act::Renewal];

struct Scene {
    bank: Bank,
    account: Account,
}

impl Scene {
    fn order(&self, file: &str, is: bool) {
        let path = self.bank.dir.path().join(file);
        if is {
            std::fs::write(path, "").unwrap();
        } else if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn slurm(&self) -> String {
        self.account.limit(Testbed::get().value("STEWARD_CLUSTER"), "GrpTRESRunMins")
    }

    /// Makes what `act` needs, and gives its arguments.
    fn prepare(&self, act: Act) -> Vec<&str> {
        let name = self.account.name.as_str();
        match act {
            Act::Check => {
                // Not held, and over its limit: as if the last check were long ago.
                self.bank.done(&["change", name, "1000"]);
                assert_eq!(self.slurm(), "cpu=77777");
                self.bank.done(&["change", name, "0"]);
                vec!["check", name]
            }
            Act::Release => {
                self.bank.done(&["change", name, "0"]);
                self.bank.done(&["check", name]);
                // Units came while slurmdbd was down: it stays held.
                self.order("refuse", true);
                assert_eq!(self.bank.run(&["change", name, "1000"]).code, 3);
                self.order("refuse", false);
                assert_eq!(self.slurm(), "cpu=0");
                vec!["release_hold", name]
            }
            Act::Renewal => {
                // Something is used that can begin anew, and nothing more is while it is looked at.
                self.bank.done(&["change", name, "1000"]);
                let job = self.account.submit(&["-t", "10"], "#!/bin/sh\nsleep 1\n");
                job.wait_ended(PATIENCE);
                wait::until_true("something was used", PATIENCE, || self.account.used() > 0);
                self.bank.done(&["change", name, "0"]);
                self.bank.done(&["check", name]);
                vec!["renewal", name, "500"]
            }
        }
    }

    /// The next run, after which all agrees.
    fn agrees(&self, what: &str, used: u64) {
        let name = self.account.name.as_str();
        for file in ["before", "after"] {
            self.order(file, false);
        }
        let settled = self.bank.done(&["check", name]);
        let info = self.bank.info(name);
        let limit = info["su_limit_hrs"].as_i64().unwrap();
        let held = info["held"].as_array().unwrap();
        let slurm = self.slurm();
        let said = || format!("{what}: {info:#}\n{slurm}\n{settled}");
        if limit == 0 {
            assert_eq!((slurm.as_str(), held.len()), ("cpu=0", 1), "{}", said());
            assert_eq!(held[0]["stage"], "held", "{}", said());
            assert_eq!(held[0]["before"], "GrpTRESRunMins=cpu=77777", "{}", said());
        } else {
            assert_eq!((slurm.as_str(), held.len()), ("cpu=77777", 0), "{}", said());
        }
        // A renewal that is in the ledger is in Slurm, too.
        let expected = if limit == 500 { 0 } else { used };
        assert_eq!(self.account.used(), expected, "{}", said());
    }
}

/// Numbers that look random and are the same in every run.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[test]
fn a_kill_at_any_moment_is_made_good_by_the_next_run() {
    let cluster = Testbed::get().value("STEWARD_CLUSTER");
    // What reaches its limit is held, so that a limit of nothing holds an account whatever it used.
    let mut bank = Bank::new(SETTINGS);
    bank.intercept(SETTINGS, SCRIPT);
    let scene = Scene { bank, account: Account::new("bank-kill", USERS[0]) };
    let Scene { bank, account } = &scene;
    let name = account.name.as_str();
    account.set(cluster, "GrpTRESRunMins=cpu=77777");
    bank.done(&["insert", name, "0"]);

    // Exactly before sacctmgr, and exactly between sacctmgr and the ledger's commit.
    for act in ACTS {
        for moment in ["before", "after"] {
            let args = scene.prepare(act);
            let used = account.used();
            scene.order(moment, true);
            let ended = bank.run(&args);
            assert_eq!(ended.code, -1, "{act:?} was not killed {moment} sacctmgr: {ended:?}");
            scene.agrees(&format!("{act:?}, killed {moment} sacctmgr"), used);
        }
    }

    let mut whole = ACTS.map(|act| {
        let args = scene.prepare(act);
        let begun = Instant::now();
        bank.run(&args);
        begun.elapsed()
    });
    let (mut seed, mut kills, mut rounds) = (20_261_116, 0, 0);
    let mut by_act = [0_u32; 3];
    while kills < KILLS && rounds < 2 * KILLS {
        let at = (rounds % 3) as usize;
        let args = scene.prepare(ACTS[at]);
        let used = account.used();
        let begun = Instant::now();
        let mut child = bank.start(&args);
        let due = whole[at] * u32::try_from(random(&mut seed) % 1000).unwrap() / 1000;
        while begun.elapsed() < due && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            (kills, by_act[at]) = (kills + 1, by_act[at] + 1);
        } else {
            whole[at] = begun.elapsed();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        scene.agrees(&format!("round {rounds}, {args:?}, killed after {due:?}"), used);
        rounds += 1;
    }
    println!("{kills} kills in {rounds} rounds: check, release_hold, renewal {by_act:?}");
    assert_eq!(kills, KILLS);
}
