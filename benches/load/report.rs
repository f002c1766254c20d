//! The figures: one line for programs as each is known, one table for people at the end.

use crate::server::Role;

/// The most that the product may take.
#[derive(Debug, Clone, Copy)]
pub enum Most {
    /// A number that is only told.
    Any,
    /// So many of the figure's unit.
    Is(f64),
    /// So many times what the relay takes in the same run.
    TimesRelay(f64),
}

/// One figure of all servers that have it.
pub struct Figure {
    name: &'static str,
    unit: &'static str,
    most: Most,
    values: Vec<(Role, f64)>,
}

/// All figures so far.
#[derive(Default)]
pub struct Report(Vec<Figure>);

impl Report {
    /// Notes a figure and says it.
    pub fn add(&mut self, name: &'static str, unit: &'static str, most: Most, values: Vec<(Role, f64)>) {
        let figure = Figure { name, unit, most, values };
        println!("{}", figure.line());
        self.0.push(figure);
    }

    /// Says all of them again, side by side.
    pub fn table(&self) {
        println!();
        println!(
            "{:<44}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}  ",
            "", "", "relay", "proxy", "ours", "to relay", "at most"
        );
        for figure in &self.0 {
            let cell = |role| figure.of(role).map_or("-".to_owned(), plain);
            let ratio = figure.of(Role::Product).zip(figure.of(Role::Relay)).map(|(ours, relay)| ours / relay);
            println!(
                "{:<44}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}  {}",
                figure.name,
                figure.unit,
                cell(Role::Relay),
                cell(Role::Proxy),
                cell(Role::Product),
                ratio.map_or("-".to_owned(), |ratio| format!("x{ratio:.1}")),
                figure.target().map_or("-".to_owned(), plain),
                figure.verdict()
            );
        }
    }
}

impl Figure {
    fn of(&self, role: Role) -> Option<f64> {
        self.values.iter().find(|(other, _)| *other == role).map(|(_, value)| *value)
    }

    fn target(&self) -> Option<f64> {
        match self.most {
            Most::Any => None,
            Most::Is(most) => Some(most),
            Most::TimesRelay(times) => self.of(Role::Relay).map(|relay| relay * times),
        }
    }

    fn verdict(&self) -> &'static str {
        match self.target().zip(self.of(Role::Product)) {
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
        if let Some(target) = self.target() {
            line.push_str(&format!(" target={target:.3} verdict={}", self.verdict().to_lowercase()));
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
pub fn p99(values: Vec<f64>) -> f64 {
    quantile(values, 990)
}

/// The value that so many of 1,000 are not above.
pub fn quantile(mut values: Vec<f64>, of_thousand: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * of_thousand).div_ceil(1000) - 1]
}
