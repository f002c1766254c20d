//! The figures: one line for programs as each is known, one table for people at the end.

use crate::server::Role;

/// One figure of all servers that have it.
pub struct Figure {
    name: &'static str,
    unit: &'static str,
    /// The most that the product may take; `None` for a number without a limit.
    target: Option<f64>,
    values: Vec<(Role, f64)>,
}

/// All figures so far.
#[derive(Default)]
pub struct Report(Vec<Figure>);

impl Report {
    /// Notes a figure and says it.
    pub fn add(&mut self, name: &'static str, unit: &'static str, target: Option<f64>, values: Vec<(Role, f64)>) {
        let figure = Figure { name, unit, target, values };
        println!("{}", figure.line());
        self.0.push(figure);
    }

    /// Says all of them again, side by side.
    pub fn table(&self) {
        println!();
        println!(
            "{:<34}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}  ",
            "", "", "limit", "proxy", "ours", "to limit", "at most"
        );
        for figure in &self.0 {
            let cell = |role| figure.of(role).map_or("-".to_owned(), plain);
            let ratio = figure.of(Role::Product).zip(figure.of(Role::Limit)).map(|(ours, limit)| ours / limit);
            println!(
                "{:<34}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}  {}",
                figure.name,
                figure.unit,
                cell(Role::Limit),
                cell(Role::Proxy),
                cell(Role::Product),
                ratio.map_or("-".to_owned(), |ratio| format!("x{ratio:.1}")),
                figure.target.map_or("-".to_owned(), plain),
                figure.verdict()
            );
        }
    }
}

impl Figure {
    fn of(&self, role: Role) -> Option<f64> {
        self.values.iter().find(|(other, _)| *other == role).map(|(_, value)| *value)
    }

    fn verdict(&self) -> &'static str {
        match self.target.zip(self.of(Role::Product)) {
            Some((target, ours)) if ours <= target => "reached",
            Some(_) => "MISSED",
            None => "",
        }
    }

    fn line(&self) -> String {
        let mut line = format!("figure name={} unit={}", self.name.replace(' ', "_"), self.unit.replace(' ', "_"));
        for (role, value) in &self.values {
            line.push_str(&format!(" {}={value:.3}", format!("{role:?}").to_lowercase()));
        }
        if let Some(target) = self.target {
            line.push_str(&format!(" target={target} verdict={}", self.verdict().to_lowercase()));
        }
        line
    }
}

fn plain(value: f64) -> String {
    match value.abs() {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The value that 99 of 100 are not above.
pub fn p99(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * 99).div_ceil(100) - 1]
}
