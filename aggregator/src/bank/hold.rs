//! Holds: what is wanted of an account on a cluster, held against what Slurm has, and what is done about it.
//!
//! What is meant to be done is written to the store before Slurm is told. Whoever finds it there later does it, or what is
//! wanted by then; what was there before the hold is written down with it and comes back when it goes.

use steward_common::bank::Mechanism;
use steward_common::bank::hold::Value;

use super::Bank;
use super::slurm::Order;
use crate::store::StoreError;
use crate::store::holds::{Action, Hold, Stage};

/// What came of a hold or release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// All is as it should be.
    Nothing,
    /// The hold was set, by this order.
    Held(Order),
    /// The hold was taken away, by this order, if one was needed.
    Released(Option<Order>),
    /// Slurm has no such account any more; the hold went with it.
    Gone,
    /// Somebody else holds the account in the same way: his hold is not ours to release.
    Foreign,
    /// It stays held: not every cluster said what was used.
    Kept,
    /// sacctmgr did not do it.
    Failed(Order, String),
}

/// What is wanted of an account on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The way to hold it.
    pub mechanism: Mechanism,
    /// The limit that holds it; `None` if it is not to be held.
    pub value: Value,
    /// Whether it may be released: what was used is known.
    pub may_release: bool,
}

/// What is to be done, decided without doing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// Somebody else holds it.
    Foreign,
    /// It stays held.
    Kept,
    /// Set this hold.
    Set(Hold),
    /// Take this hold away, and tell Slurm so unless somebody else has changed the limit meanwhile.
    Clear(Hold, bool),
}

/// Decides.
#[must_use]
pub fn decide(
    account: &str,
    cluster: &str,
    wanted: Wanted,
    own: Option<&Hold>,
    limit: impl Fn(Mechanism) -> Value,
) -> Step {
    let Wanted { mechanism, value, may_release } = wanted;
    let Some(own) = own else {
        let Some(value) = value else { return Step::Nothing };
        let previous = limit(mechanism);
        if previous == Some(value) {
            return Step::Foreign;
        }
        return Step::Set(Hold {
            account: account.to_owned(),
            cluster: cluster.to_owned(),
            mechanism,
            value,
            previous,
            stage: Stage::Wanted,
            since: super::now(),
        });
    };
    let found = limit(own.mechanism);
    let is_ours = found == Some(own.value);
    // In the middle of a change Slurm may have the hold before it: only what was there before all is not ours.
    let tell = if own.stage == Stage::Held { is_ours } else { found != own.previous };
    match value {
        Some(value) if own.mechanism == mechanism => {
            if is_ours && own.value == value && own.stage == Stage::Held {
                return Step::Nothing;
            }
            // Somebody changed it under the hold: that is what he wants to have back.
            let previous = if own.stage == Stage::Held && !is_ours { found } else { own.previous };
            Step::Set(Hold { value, previous, stage: Stage::Wanted, ..own.clone() })
        }
        // The settings name another way now, and nothing is over: this one goes, the next run sets the other.
        Some(_) => Step::Clear(own.clone(), tell),
        None if !may_release => Step::Kept,
        None => Step::Clear(own.clone(), tell),
    }
}

impl Bank {
    /// Does it.
    ///
    /// # Errors
    /// If the store fails; then nothing more was told to Slurm than the store knows of.
    pub async fn carry_out(&self, step: Step) -> Result<Done, StoreError> {
        match step {
            Step::Nothing => Ok(Done::Nothing),
            Step::Foreign => Ok(Done::Foreign),
            Step::Kept => Ok(Done::Kept),
            Step::Set(hold) => {
                let setting = hold.mechanism.setting(Some(hold.value));
                let order = Order::new(&hold.account, &hold.cluster, setting);
                if self.dry {
                    return Ok(Done::Held(order));
                }
                self.store.put_hold(&hold, &self.actor).await?;
                if let Err(why) = self.told(&order).await? {
                    return Ok(Done::Failed(order, why));
                }
                let held = Hold { stage: Stage::Held, ..hold };
                self.store.put_hold(&held, &self.actor).await?;
                Ok(Done::Held(order))
            }
            Step::Clear(hold, is_ours) => {
                let setting = hold.mechanism.setting(hold.previous);
                let order = Order::new(&hold.account, &hold.cluster, setting);
                let order = is_ours.then_some(order);
                if self.dry {
                    return Ok(Done::Released(order));
                }
                let leaving = Hold { stage: Stage::Leaving, ..hold };
                self.store.put_hold(&leaving, &self.actor).await?;
                if let Some(order) = &order
                    && let Err(why) = self.told(order).await?
                {
                    return Ok(Done::Failed(order.clone(), why));
                }
                self.store.drop_hold(&leaving.account, &leaving.cluster).await?;
                Ok(Done::Released(order))
            }
        }
    }

    /// Takes the holds of an account away, whatever it used; what was done on each cluster, and what went wrong.
    ///
    /// # Errors
    /// If Slurm's accounts or the store cannot be read.
    pub async fn release(
        &self,
        account: &str,
    ) -> anyhow::Result<(Vec<(String, Done)>, Vec<String>)> {
        let (mut all, mut troubles) = (Vec::new(), Vec::new());
        let now = self.ask().await?;
        let holds = self.store.holds().await?;
        for own in holds.values().filter(|hold| hold.account == account) {
            let Some(there) = now.associations.get(&(own.cluster.clone(), account.to_owned()))
            else {
                troubles.push(format!("{account} is not known on {} any more", own.cluster));
                continue;
            };
            let wanted = Wanted { mechanism: own.mechanism, value: None, may_release: true };
            let limit = |mechanism| there.limit(mechanism);
            let step = decide(account, &own.cluster, wanted, Some(own), limit);
            let done = self.carry_out(step).await?;
            if let Done::Failed(order, why) = &done {
                troubles.push(format!("{order}: {why}"));
            }
            all.push((own.cluster.clone(), done));
        }
        if !self.dry && troubles.is_empty() {
            self.store.forget_over(account).await?;
        }
        Ok((all, troubles))
    }

    /// Tells Slurm, and records that.
    ///
    /// # Errors
    /// If that cannot be recorded.
    pub async fn told(&self, order: &Order) -> Result<Result<(), String>, StoreError> {
        let result = self.slurm.tell(order).await;
        let outcome =
            result.as_ref().map_or_else(|why| format!("failed: {why}"), |()| "done".into());
        let action = Action {
            at: super::now(),
            account: order.account.clone(),
            cluster: order.cluster.clone(),
            actor: self.actor.clone(),
            command: order.to_string(),
            outcome,
        };
        self.store.add_action(&action).await?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use steward_common::time::Timestamp;

    use super::*;

    const WAY: Mechanism = Mechanism::RunningMinutes;

    fn wanted(value: Value) -> Wanted {
        Wanted { mechanism: WAY, value, may_release: true }
    }

    fn own(stage: Stage, previous: Value) -> Hold {
        Hold {
            account: "a".into(),
            cluster: "c".into(),
            mechanism: WAY,
            value: 0,
            previous,
            stage,
            since: Timestamp::new(1),
        }
    }

    fn step(wanted: Wanted, own: Option<&Hold>, found: Value) -> Step {
        decide("a", "c", wanted, own, |_| found)
    }

    fn previous(step: &Step) -> Value {
        match step {
            Step::Set(hold) | Step::Clear(hold, _) => hold.previous,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_hold_remembers_what_was_there() {
        assert_eq!(previous(&step(wanted(Some(0)), None, Some(100))), Some(100));
        assert_eq!(previous(&step(wanted(Some(0)), None, None)), None);
        assert_eq!(step(wanted(Some(0)), None, Some(0)), Step::Foreign, "not ours to release");
        assert_eq!(step(wanted(None), None, Some(0)), Step::Nothing);
    }

    #[test]
    fn b13_a_hold_that_is_there_stays_and_one_that_somebody_took_away_comes_back() {
        let held = own(Stage::Held, Some(100));
        assert_eq!(step(wanted(Some(0)), Some(&held), Some(0)), Step::Nothing);
        let again = step(wanted(Some(0)), Some(&held), Some(500));
        assert_eq!(previous(&again), Some(500), "what somebody set meanwhile");
    }

    #[test]
    fn after_a_crash_what_was_meant_is_done() {
        let meant = own(Stage::Wanted, Some(100));
        // Before sacctmgr, and after it: what was there before is not forgotten.
        for found in [Some(100), Some(0)] {
            assert_eq!(previous(&step(wanted(Some(0)), Some(&meant), found)), Some(100));
        }
        // It is not wanted any more: Slurm is told only if it has the hold.
        assert_eq!(step(wanted(None), Some(&meant), Some(0)), Step::Clear(meant.clone(), true));
        assert_eq!(step(wanted(None), Some(&meant), Some(100)), Step::Clear(meant, false));
        let leaving = own(Stage::Leaving, Some(100));
        assert_eq!(step(wanted(None), Some(&leaving), Some(0)), Step::Clear(leaving.clone(), true));
        assert_eq!(
            step(wanted(None), Some(&leaving), Some(100)),
            Step::Clear(leaving.clone(), false)
        );
        assert_eq!(previous(&step(wanted(Some(0)), Some(&leaving), Some(100))), Some(100));
    }

    #[test]
    fn a_hold_whose_value_was_being_changed_goes_too() {
        let meant = Hold { mechanism: Mechanism::Billing, value: 120, ..own(Stage::Wanted, None) };
        let none = Wanted { mechanism: Mechanism::Billing, ..wanted(None) };
        assert_eq!(step(none, Some(&meant), Some(60)), Step::Clear(meant.clone(), true));
        assert_eq!(step(none, Some(&meant), None), Step::Clear(meant, false));
    }

    #[test]
    fn nothing_is_released_while_a_cluster_is_silent() {
        let held = own(Stage::Held, None);
        let silent = Wanted { may_release: false, ..wanted(None) };
        assert_eq!(step(silent, Some(&held), Some(0)), Step::Kept);
    }

    #[test]
    fn a_limit_that_somebody_else_has_changed_is_left_as_it_is() {
        let held = own(Stage::Held, Some(100));
        assert_eq!(step(wanted(None), Some(&held), Some(700)), Step::Clear(held.clone(), false));
        assert_eq!(step(wanted(None), Some(&held), Some(0)), Step::Clear(held, true));
    }

    #[test]
    fn another_mechanism_begins_with_the_end_of_the_first() {
        let held = own(Stage::Held, None);
        let other = Wanted { mechanism: Mechanism::Billing, ..wanted(Some(60)) };
        assert_eq!(step(other, Some(&held), Some(0)), Step::Clear(held, true));
    }
}
