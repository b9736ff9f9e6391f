use proptest::prelude::*;

use super::*;

/// Recorded from the testbed: see the README beside them.
macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/snapshot-slurm-22.05/", $name))
    };
}

fn node(line: &str) -> Node {
    node::parse(line).unwrap().remove(0)
}

fn snapshot(nodes: Vec<Node>) -> Snapshot {
    let now = Timestamp::new(1_794_827_410);
    let mut snapshot = Snapshot::unseen(ClusterName::new("c").unwrap(), now);
    snapshot.nodes = Some(Seen::new(now, nodes));
    snapshot
}

#[test]
fn nodes_as_scontrol_lists_them() {
    let nodes = node::parse(recorded!("scontrol-show-nodes.txt")).unwrap();
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4"]);
    let [n1, n2, n3, n4] = nodes.try_into().unwrap();
    assert_eq!(n1.cpus, Amount { total: 8, allocated: 7, error: 0 });
    assert_eq!(n1.memory.allocated, 1030 << 20);
    assert!(n1.load.is_some() && n1.gres.is_empty() && n1.reason.is_none());
    assert_eq!(n2.state.to_string(), "IDLE+DRAIN");
    let reason = n2.reason.unwrap();
    assert_eq!(&*reason.text, "bad DIMM, see ticket=12 State=IDLE");
    assert_eq!(reason.author.as_deref(), Some("root"));
    assert!(reason.since.is_some());
    assert_eq!((n3.gres[0].total, n3.gres[0].used, &*n3.gres[0].model), (2, 1, "fake"));
    assert_eq!(n4.state.to_string(), "IDLE+MAINTENANCE+RESERVED");
    assert_eq!(n4.partitions, ["gpu".into()]);
    assert!(n4.booted.is_some());
}

#[test]
fn a_reason_of_several_lines_is_whole_and_its_stamp_found() {
    let begin = "NodeName=n1 CPUAlloc=0 CPUTot=8 RealMemory=100 AllocMem=0 State=IDLE+DRAIN";
    for (written, text, author, since) in [
        ("bad DIMM [root@17]", "bad DIMM", Some("root"), Some(17)),
        // As scontrol -o writes a line break.
        ("one [ann@17]        two        three", "one\ntwo\nthree", Some("ann"), Some(17)),
        ("one [ann@17]        two [eve@5]", "one\ntwo [eve@5]", Some("ann"), Some(17)),
        ("one [ann@17]\ntwo", "one\ntwo", Some("ann"), Some(17)),
        ("see [a@b] and [eve@5] [ann@17]", "see [a@b] and [eve@5]", Some("ann"), Some(17)),
        ("one [ann@17] Comment=x [eve@5]", "one", Some("ann"), Some(17)),
        ("one [ann@17]        two ReservationName=r", "one\ntwo", Some("ann"), Some(17)),
        ("see Comment=5 [ann@17]", "see Comment=5", Some("ann"), Some(17)),
        ("no stamp Extra=x", "no stamp", None, None),
    ] {
        let reason = node(&format!("{begin} Reason={written}")).reason.unwrap();
        assert_eq!(&*reason.text, text, "{written:?}");
        assert_eq!(reason.author.as_deref(), author, "{written:?}");
        assert_eq!(reason.since.map(Timestamp::get), since, "{written:?}");
    }
    assert_eq!(node(&format!("{begin} Reason= Comment=x")).reason, None);
}

#[test]
fn a_line_break_in_a_comment_neither_hides_the_nodes_nor_makes_one() {
    let text = "\
NodeName=n1 CPUAlloc=2 CPUTot=8 RealMemory=100 State=MIXED Reason=one [ann@17] Comment=first
NodeName=n9 is broken too
State=DOWN ReservationName=class
NodeName=n2 CPUAlloc=0 CPUTot=4 RealMemory=100 State=IDLE
";
    let [n1, n2] = node::parse(text).unwrap().try_into().unwrap();
    assert_eq!((n1.name.as_str(), n1.cpus.allocated, n1.state.base), ("n1", 2, Base::Mixed));
    assert_eq!(n1.reservation.as_deref(), Some("class"));
    assert_eq!(n1.reason.as_ref().map(|reason| &*reason.text), Some("one"));
    assert_eq!((n2.name.as_str(), n2.cpus.total), ("n2", 4));
    assert!(node::parse("slurm_load_node error").is_err());
}

#[test]
fn what_else_scontrol_and_sshare_and_sdiag_tell() {
    let partitions = partition::parse(recorded!("scontrol-show-partitions.txt")).unwrap();
    assert_eq!((&*partitions[0].name, partitions[0].is_default), ("cpu", true));
    assert_eq!(partitions[1].longest, Some(crate::limit::Limit::At(Duration::from_secs(86_400))));
    assert_eq!(&*partitions[1].state, "up");

    let reservations = reservation::parse(recorded!("scontrol-show-reservations.txt")).unwrap();
    let [maint, class] = reservations.try_into().unwrap();
    assert!(maint.is_maintenance() && !class.is_maintenance());
    let begin = maint.start.unwrap();
    assert!(maint.is_active(begin) && !maint.is_active(maint.end.unwrap()));
    assert!(!class.is_active(begin));
    assert_eq!(class.accounts.as_deref(), Some("physics"));
    let none = recorded!("scontrol-show-reservations-none.txt");
    assert_eq!(reservation::parse(none), Ok(Vec::new()));
    assert!(reservation::parse("slurm_load_reservations error").is_err());

    let licences = licence::parse(recorded!("scontrol-show-licenses.txt")).unwrap();
    assert_eq!((&*licences[0].name, licences[0].total, licences[0].free()), ("matlab@flex", 5, 5));
    assert_eq!(licence::parse(recorded!("scontrol-show-licenses-none.txt")), Ok(Vec::new()));

    let shares = share::parse(recorded!("sshare.txt")).unwrap();
    let of_cluster = share::parse(recorded!("sshare-of-a-cluster.txt")).unwrap();
    assert_eq!(shares.len(), of_cluster.len());
    let root = &shares[0];
    assert_eq!(
        (&*root.account, root.depth, root.fairshare, root.raw_shares),
        ("root", 0, None, None)
    );
    let alice = shares.iter().find(|one| one.user.as_deref() == Some("stw-alice")).unwrap();
    assert_eq!((&*alice.account, alice.depth, alice.fairshare), ("physics", 2, Some(0.2)));
    assert_eq!(shares[1].level, Some(f64::INFINITY));
    assert!(share::parse("sshare: error: no\n").is_err());

    let scheduler = scheduler::parse(recorded!("sdiag.txt")).unwrap();
    assert!(scheduler.since.is_some());
    assert!(scheduler.jobs_submitted.unwrap() >= 1000);
    assert!(scheduler.cycles.unwrap() > scheduler.backfill_cycles.unwrap());
    assert!(scheduler.by_message.iter().any(|one| &*one.name == "REQUEST_PARTITION_INFO"));
    assert!(scheduler.by_user.iter().any(|one| &*one.name == "root" && one.count > 0));
    assert_eq!(scheduler::parse("slurm_load_diag: no\n"), None);
}

#[test]
fn e1_a_node_whose_gpus_are_all_held() {
    let n = node(
        "NodeName=a CPUAlloc=8 CPUTot=16 RealMemory=100 AllocMem=10 State=MIXED \
         Gres=gpu:rtx8000:8(S:0-1) GresUsed=gpu:rtx8000:8(IDX:0-7)",
    );
    let split = n.split();
    let [(stock, gpus)] = split.gres.as_slice() else { panic!("{split:?}") };
    assert_eq!(&*stock.model, "rtx8000");
    assert_eq!((gpus.allocated, gpus.idle, gpus.total()), (8, 0, 8));
}

#[test]
fn e5_allocated_cpus_are_not_idle() {
    let n =
        node("NodeName=cn-a006 CPUAlloc=32 CPUErr=0 CPUTot=80 RealMemory=1 AllocMem=0 State=MIXED");
    let cpus = n.split().cpus;
    assert_eq!((cpus.allocated, cpus.idle, cpus.unusable(), cpus.total()), (32, 48, 0, 80));
}

#[test]
fn e8_sinfos_four_figures() {
    let mut sums = Sums::default();
    for line in [
        "NodeName=a CPUAlloc=5725 CPUTot=6602 RealMemory=1 AllocMem=0 State=MIXED+PLANNED",
        "NodeName=b CPUAlloc=0 CPUTot=34 RealMemory=1 AllocMem=0 State=IDLE+DRAIN",
    ] {
        sums.add(&node(line).split());
    }
    assert_eq!(sums.sinfo_cpus(), [5725, 877, 34, 6636]);
    // Ours tells why sinfo's idle ones cannot be had.
    assert_eq!(sums.cpus.get(Class::Unusable(Cause::Planned)), 877);
}

#[test]
fn e9_a_node_of_five_partitions_counts_once_in_the_cluster() {
    let n = node(
        "NodeName=cs25 CPUAlloc=0 CPUTot=64 RealMemory=1 AllocMem=0 State=IDLE Partitions=a,b,c,d,e",
    );
    let snapshot = snapshot(vec![n]);
    assert_eq!(snapshot.sums().unwrap().cpus.total(), 64);
    let partitions = snapshot.sums_by_partition().unwrap();
    assert_eq!(partitions.len(), 5);
    assert!(partitions.values().all(|sums| sums.cpus.idle == 64));
}

#[test]
fn a_draining_node_counts_what_runs_as_allocated() {
    let n = node(
        "NodeName=a CPUAlloc=3 CPUTot=8 RealMemory=8 AllocMem=2 State=MIXED+DRAIN Gres=gpu:2 GresUsed=gpu:1",
    );
    let split = n.split();
    let drain = Class::Unusable(Cause::Drain);
    assert_eq!((split.cpus.allocated, split.cpus.get(drain)), (3, 5));
    assert_eq!((split.memory.allocated, split.memory.get(drain)), (2 << 20, 6 << 20));
    assert_eq!((split.gres[0].1.allocated, split.gres[0].1.get(drain)), (1, 1));
    assert_eq!(split.sinfo_idle, 0);
}

#[test]
fn what_is_stranded_says_for_want_of_what() {
    let full = node(
        "NodeName=a CPUAlloc=8 CPUTot=8 RealMemory=8 AllocMem=2 State=ALLOCATED Gres=gpu:2 GresUsed=gpu:1",
    );
    let split = full.split();
    assert_eq!(split.memory.get(Class::Unusable(Cause::NoCpu)), 6 << 20);
    assert_eq!(split.gres[0].1.get(Class::Unusable(Cause::NoCpu)), 1);
    assert_eq!(split.cpus.unusable(), 0);
    let no_memory = node(
        "NodeName=a CPUAlloc=2 CPUTot=8 RealMemory=8 AllocMem=8 State=MIXED Gres=gpu:2 GresUsed=gpu:1",
    );
    let split = no_memory.split();
    assert_eq!(split.cpus.get(Class::Unusable(Cause::NoMem)), 6);
    assert_eq!(split.gres[0].1.get(Class::Unusable(Cause::NoMem)), 1);
    let neither = node(
        "NodeName=a CPUAlloc=8 CPUTot=8 RealMemory=8 AllocMem=8 State=ALLOCATED Gres=gpu:2 GresUsed=gpu:1",
    );
    assert_eq!(neither.split().gres[0].1.get(Class::Unusable(Cause::NoCpu)), 1);
    // Where memory is not counted nothing lacks it.
    let uncounted = node("NodeName=a CPUAlloc=2 CPUTot=8 RealMemory=8 AllocMem=0 State=MIXED");
    assert_eq!(uncounted.split().cpus.idle, 6);
}

#[test]
fn faulty_cpus_are_unusable_unless_the_node_is_out_anyway() {
    let n = node("NodeName=a CPUAlloc=2 CPUErr=1 CPUTot=4 RealMemory=8 AllocMem=0 State=MIXED");
    let cpus = n.split().cpus;
    assert_eq!((cpus.allocated, cpus.idle, cpus.get(Class::Unusable(Cause::Error))), (2, 1, 1));
    let n = node("NodeName=a CPUAlloc=0 CPUErr=4 CPUTot=4 RealMemory=8 AllocMem=0 State=IDLE");
    assert_eq!(n.split().cpus.get(Class::Unusable(Cause::Error)), 4);
    let n = node("NodeName=a CPUAlloc=0 CPUErr=1 CPUTot=4 RealMemory=8 AllocMem=0 State=DOWN");
    assert_eq!(n.split().cpus.get(Class::Unusable(Cause::Down)), 4);
}

#[test]
fn of_several_reservations_the_first_holds_the_node() {
    let text = "ReservationName=b StartTime=100 EndTime=900 Nodes=n[1-2]\n\
                ReservationName=a StartTime=200 EndTime=900 Nodes=n[2-3]\n\
                ReservationName=c StartTime=600 EndTime=900 Nodes=n4\n";
    let mut snapshot = snapshot(Vec::new());
    let now = Timestamp::new(500);
    snapshot.reservations = Some(Seen::new(now, reservation::parse(text).unwrap()));
    let reserved = snapshot.reserved(now);
    let of = |name: &str| reserved.get(&NodeName::new(name).unwrap()).map(|name| &**name);
    assert_eq!((of("n1"), of("n2"), of("n3"), of("n4")), (Some("b"), Some("b"), Some("a"), None));
}

#[test]
fn nothing_seen_is_nothing_known() {
    let unseen = Snapshot::unseen(ClusterName::new("c").unwrap(), Timestamp::new(1));
    assert_eq!(unseen.sums(), None);
    assert_eq!(unseen.sums_by_partition(), None);
    assert_eq!(snapshot(Vec::new()).sums(), Some(Sums::default()));
}

fn any_amount() -> impl Strategy<Value = Amount> {
    let figure = || prop_oneof![0..5u64, 0..200u64, any::<u64>()];
    (figure(), figure(), figure()).prop_map(|(total, allocated, error)| Amount {
        total,
        allocated,
        error,
    })
}

fn any_state() -> impl Strategy<Value = NodeState> {
    let base = prop::sample::select(Base::ALL);
    let flags = prop::collection::vec(prop::sample::select(Flag::ALL), 0..5);
    (base, flags)
        .prop_map(|(base, flags)| flags.into_iter().fold(NodeState::new(base), NodeState::with))
}

fn any_node() -> impl Strategy<Value = Node> {
    let gres = prop::collection::vec(("gpu|shard", "a100|", any_amount()), 0..4);
    (any_state(), any_amount(), any_amount(), gres).prop_map(|(state, cpus, memory, gres)| {
        let stock = |(kind, model, amount): (String, String, Amount)| Stock {
            kind: kind.into(),
            model: model.into(),
            total: amount.total,
            used: amount.allocated,
        };
        let name = NodeName::new("n").unwrap();
        Node { cpus, memory, gres: gres.into_iter().map(stock).collect(), ..Node::new(name, state) }
    })
}

proptest! {
    /// For any node, also one whose figures contradict one another.
    #[test]
    fn classes_sum_to_the_total(node in any_node()) {
        let split = node.split();
        prop_assert_eq!(split.cpus.total(), node.cpus.total);
        prop_assert_eq!(split.memory.total(), node.memory.total);
        prop_assert_eq!(split.gres.len(), node.gres.len());
        for (stock, split) in &split.gres {
            prop_assert_eq!(split.total(), stock.total);
        }
        prop_assert!(split.sinfo_idle <= node.cpus.total);
    }

    /// A node that is out has nothing idle; what jobs hold stays theirs.
    #[test]
    fn a_node_that_is_out_has_one_cause_and_nothing_idle(node in any_node()) {
        let split = node.split();
        prop_assert_eq!(split.cpus.allocated, node.cpus.allocated.min(node.cpus.total));
        if let Some(cause) = Cause::of(node.state) {
            let all = [split.cpus, split.memory].into_iter().chain(split.gres.iter().map(|one| one.1));
            for one in all {
                prop_assert_eq!(one.idle, 0);
                if cause < Cause::Error {
                    prop_assert_eq!(one.get(Class::Unusable(cause)), one.unusable());
                }
            }
        }
    }

    /// However nodes share partitions, the cluster's sum is that of its nodes.
    #[test]
    fn shared_nodes_count_once(nodes in prop::collection::vec((any_node(), 0..4usize), 0..8)) {
        let mut total = 0u64;
        let mut all = Vec::new();
        for (mut node, shared) in nodes {
            node.partitions = ["a", "b", "c", "d"].iter().take(shared).map(|p| (*p).into()).collect();
            total = total.saturating_add(node.cpus.total);
            all.push(node);
        }
        let count = all.len() as u64;
        let sums = snapshot(all).sums().unwrap();
        prop_assert_eq!(sums.nodes, count);
        prop_assert_eq!(sums.cpus.total(), total);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|NodeName=[a-z]{1,3} CPUAlloc=[0-9]{0,3} CPUTot=[0-9]{1,3}\\PC{0,20}") {
        drop(node::parse(&text));
        drop(partition::parse(&text));
        drop(reservation::parse(&text));
        drop(licence::parse(&text));
        drop(share::parse(&text));
        drop(limits::parse(&text));
        drop(scheduler::parse(&text));
        drop(reason::label(&text));
    }
}
