//! What an expression names and gives, checked against the catalogue.

use std::collections::BTreeSet;

use promql_parser::parser::token::{T_BOTTOMK, T_LAND, T_LOR, T_LUNLESS, T_TOPK};
use promql_parser::parser::value::ValueType;
use promql_parser::parser::{self, BinaryExpr, Expr, LabelModifier, VectorMatchCardinality};
use steward_common::metric::{self, Kind, Set};

/// Inherited metrics without a successor; all others have one that the dashboards take, since a
/// site may switch the inherited set off.
const INHERITED: [&str; 1] = ["jobs_thread_count"];

/// Names of labels.
pub type Labels = BTreeSet<String>;

/// Whether all of `some` are in `all`.
pub fn within(what: &str, some: &[String], all: &Labels) -> Result<(), String> {
    match some.iter().find(|label| !all.contains(*label)) {
        Some(label) => Err(format!("{what} ({label}): the series have {all:?}")),
        None => Ok(()),
    }
}

/// The labels of an expression's result, if all that it names exists.
pub fn labels(expr: &Expr) -> Result<Labels, String> {
    match expr {
        Expr::Aggregate(aggregate) => {
            let inner = labels(&aggregate.expr)?;
            if [T_TOPK, T_BOTTOMK].contains(&aggregate.op.id()) {
                // These choose series, and leave them as they are.
                return Ok(inner);
            }
            match &aggregate.modifier {
                Some(LabelModifier::Include(by)) => {
                    within("by", &by.labels, &inner)?;
                    Ok(by.labels.iter().cloned().collect())
                }
                Some(LabelModifier::Exclude(without)) => {
                    within("without", &without.labels, &inner)?;
                    Ok(inner.into_iter().filter(|l| !without.labels.contains(l)).collect())
                }
                None => Ok(Labels::new()),
            }
        }
        Expr::Binary(binary) => labels_of_binary(binary),
        Expr::Call(call) => {
            let needs_counter = ["rate", "irate", "increase"].contains(&call.func.name);
            let mut all = Labels::new();
            for argument in &call.args.args {
                all.extend(labels(argument)?);
                if let (true, Expr::MatrixSelector(matrix)) = (needs_counter, argument.as_ref()) {
                    let name = matrix.vs.name.as_deref().unwrap_or_default();
                    if metric::find(name).is_none_or(|def| def.kind != Kind::Counter) {
                        return Err(format!("{}({name}): not a counter", call.func.name));
                    }
                }
            }
            Ok(all)
        }
        Expr::MatrixSelector(matrix) => labels_of_series(&matrix.vs),
        Expr::VectorSelector(series) => labels_of_series(series),
        Expr::Paren(paren) => labels(&paren.expr),
        Expr::Subquery(subquery) => labels(&subquery.expr),
        Expr::Unary(unary) => labels(&unary.expr),
        Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Ok(Labels::new()),
        Expr::Extension(_) => Err("an extension is not PromQL".to_owned()),
    }
}

fn labels_of_series(series: &parser::VectorSelector) -> Result<Labels, String> {
    let name = series.name.as_deref().ok_or("a selector without a metric's name")?;
    let def = metric::find(name).ok_or_else(|| format!("{name} is not in the catalogue"))?;
    if def.set == Set::Original && !INHERITED.contains(&name) {
        return Err(format!("{name} has a successor"));
    }
    let mut all: Labels = def.all_labels().map(str::to_owned).collect();
    let alternatives = series.matchers.or_matchers.iter().flatten();
    let matchers = series.matchers.matchers.iter().chain(alternatives);
    let named: Vec<String> = matchers.map(|matcher| matcher.name.clone()).collect();
    if def.name == metric::cluster::CONSTANT.name {
        // A site gives it whatever labels it likes.
        all.extend(named.iter().cloned());
    }
    within(name, &named, &all)?;
    // Job ids and node names are unique within a cluster only; the bank and the service are the site's.
    let is_of_site =
        def.set == Set::Centre || metric::bank::BANK.iter().any(|one| one.name == name);
    if !is_of_site && !named.iter().any(|label| label == "cluster") {
        return Err(format!("{name} of which cluster?"));
    }
    Ok(all)
}

fn labels_of_binary(binary: &BinaryExpr) -> Result<Labels, String> {
    let (left, right) = (labels(&binary.lhs)?, labels(&binary.rhs)?);
    let is_scalar = |expr: &Expr| expr.value_type() == ValueType::Scalar;
    if is_scalar(&binary.lhs) || is_scalar(&binary.rhs) {
        return Ok(left.into_iter().chain(right).collect());
    }
    let modifier = binary.modifier.as_ref();
    let on = match modifier.and_then(|modifier| modifier.matching.as_ref()) {
        Some(LabelModifier::Include(on)) => {
            within("on, left", &on.labels, &left)?;
            within("on, right", &on.labels, &right)?;
            on.labels.iter().cloned().collect()
        }
        Some(LabelModifier::Exclude(_)) => return Err("use on (), not ignoring ()".to_owned()),
        None if left == right => left.clone(),
        None => return Err(format!("never match without on (): {left:?} and {right:?}")),
    };
    if [T_LAND, T_LUNLESS].contains(&binary.op.id()) {
        return Ok(left);
    }
    if binary.op.id() == T_LOR {
        return Ok(left.into_iter().chain(right).collect());
    }
    match modifier.map(|modifier| &modifier.card) {
        Some(VectorMatchCardinality::ManyToOne(taken)) => {
            within("group_left", &taken.labels, &right)?;
            Ok(left.into_iter().chain(taken.labels.iter().cloned()).collect())
        }
        Some(VectorMatchCardinality::OneToMany(taken)) => {
            within("group_right", &taken.labels, &left)?;
            Ok(right.into_iter().chain(taken.labels.iter().cloned()).collect())
        }
        _ => Ok(on),
    }
}
