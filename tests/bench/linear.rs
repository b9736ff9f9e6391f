//! How the cost grows: with jobs and with processes, along a straight line.

use crate::cycle::WARM_UP;
use crate::report::{Spread, ms};
use crate::subject::Subject;
use crate::workload::Workload;

/// Jobs and processes of each, in an order in which little has to be made anew.
const SIZES: [(u32, u32); 6] = [(16, 16), (128, 16), (64, 16), (64, 8), (64, 32), (64, 80)];
/// At each of two visits.
const CYCLES: usize = 15;

/// What a cycle cost at one size.
struct Point {
    jobs: f64,
    processes: f64,
    cost: f64,
}

/// Measures and prints.
pub fn run() {
    println!("Growth of a cycle's CPU with jobs and processes; lower quartile of {}\n", 2 * CYCLES);
    println!("  jobs x processes  cycle      a process   a job       off the line");
    let mut load = Workload::empty();
    let mut costs = SIZES.map(|_| Vec::new());
    // Forth and back, so that a machine which grows busier bends no line.
    for at in (0..SIZES.len()).chain((0..SIZES.len()).rev()) {
        let (jobs, processes) = SIZES[at];
        load.size(jobs, processes);
        let mut agent = Subject::new();
        let cycles = (0..WARM_UP + CYCLES).map(|_| ms(agent.cycle().whole) * 1e3);
        costs[at].extend(cycles.skip(WARM_UP));
    }
    let points: Vec<Point> = SIZES
        .into_iter()
        .zip(costs)
        .map(|((jobs, processes), costs)| Point {
            jobs: f64::from(jobs),
            processes: f64::from(jobs * processes),
            // Other work on the machine only adds.
            cost: Spread::of(costs).low,
        })
        .collect();
    let line = fit(&points);
    let off = |point: &Point| {
        let fitted = line[0] + line[1] * point.jobs + line[2] * point.processes;
        point.cost / fitted - 1.0
    };
    for point in &points {
        println!(
            "  {:4} x {:<9}  {:6.1} ms  {:6.1} us  {:8.1} us  {:+8.1} %",
            point.jobs,
            point.processes / point.jobs,
            point.cost / 1e3,
            point.cost / point.processes,
            point.cost / point.jobs,
            off(point) * 100.0
        );
    }
    let worst = points.iter().map(|point| off(point).abs()).fold(0.0, f64::max);
    println!(
        "  line: {:.0} us + {:.1} us a job + {:.1} us a process; the worst point is {:.1} % off",
        line[0],
        line[1],
        line[2],
        worst * 100.0
    );
}

/// The plane `a + b*jobs + c*processes` with the least squares of relative deviations: a small
/// point counts as much as a large one.
fn fit(points: &[Point]) -> [f64; 3] {
    // The normal equations, a row for each unknown, the right side last.
    let mut rows = [[0.0; 4]; 3];
    for point in points {
        let terms = [1.0, point.jobs, point.processes, point.cost].map(|term| term / point.cost);
        for (row, own) in rows.iter_mut().zip(terms) {
            for (sum, other) in row.iter_mut().zip(terms) {
                *sum += own * other;
            }
        }
    }
    // Gauss-Jordan; the matrix is positive definite, so that no pivot is 0.
    for pivot in 0..3 {
        let scale = rows[pivot][pivot];
        rows[pivot] = rows[pivot].map(|value| value / scale);
        let own = rows[pivot];
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != pivot) {
            let factor = row[pivot];
            for (value, above) in row.iter_mut().zip(own) {
                *value -= factor * above;
            }
        }
    }
    rows.map(|row| row[3])
}
