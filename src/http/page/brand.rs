//! `[page]`: the name, the drawing, the colour and the first words that a deployment gives the page.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde_json::json;

use super::config::PageConfig;

/// The longest name, in characters: a heading of a narrow column.
const NAME_CHARS: usize = 60;

/// How many starters there may be, and how long one is, in characters.
const STARTERS: usize = 8;
const STARTER_CHARS: usize = 300;

/// The largest logo: 64 KiB, a drawing.
const LOGO_BYTES: usize = 64 << 10;

/// The page's backgrounds, light and dark, against which its accent has to be read.
const BACKGROUNDS: [Colour; 2] = [Colour([0xfb, 0xfa, 0xf8]), Colour([0x19, 0x1a, 0x1b])];

/// The contrast that texts need (WCAG 2.2, 1.4.3).
const CONTRAST: f64 = 4.5;

/// The files of the page that a deployment has its own of.
#[derive(Debug, Clone, Default)]
pub struct Brand {
    name: String,
    /// Its name below `/page/`, and its bytes.
    logo: Option<(&'static str, Vec<u8>)>,
    accent: Option<Colour>,
    starters: Vec<String>,
}

impl Brand {
    /// The mistakes in what is said of it: keys, and reasons.
    pub fn mistakes(config: &PageConfig) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if config.name.chars().count() > NAME_CHARS || config.name.chars().any(char::is_control) {
            found.push(("name", format!("must be one line of at most {NAME_CHARS} characters")));
        }
        if !config.accent.is_empty() && Colour::parse(&config.accent).is_none() {
            found.push(("accent", "must be a colour as #rrggbb".to_owned()));
        }
        let is_odd = |text: &String| text.trim().is_empty() || text.chars().count() > STARTER_CHARS;
        if config.starters.len() > STARTERS || config.starters.iter().any(is_odd) {
            found.push((
                "starters",
                format!("must be at most {STARTERS} texts, each of 1 to {STARTER_CHARS} characters"),
            ));
        }
        if !config.logo.is_empty() && logo_name(&config.logo).is_none() {
            found.push(("logo", "must be a file that ends in .svg or .png".to_owned()));
        } else if let Err(error) = Self::load(config) {
            found.push(("logo", format!("cannot be used: {error}")));
        }
        found
    }

    /// The brand of these settings, whose logo is read.
    ///
    /// # Errors
    /// When that cannot be read, or is too large.
    pub fn load(config: &PageConfig) -> io::Result<Self> {
        let logo = match logo_name(&config.logo) {
            None => None,
            Some(name) => {
                let bytes = std::fs::read(&config.logo)?;
                if bytes.len() > LOGO_BYTES {
                    let reason = format!("it has {} bytes, and {LOGO_BYTES} are allowed", bytes.len());
                    return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
                }
                Some((name, bytes))
            }
        };
        let accent = Colour::parse(&config.accent);
        Ok(Self { name: config.name.trim().to_owned(), logo, accent, starters: config.starters.clone() })
    }

    /// The markup of the page with its name and icon.
    pub(super) fn markup(&self, index: &str) -> String {
        let mut markup = index.to_owned();
        if !self.name.is_empty() {
            markup = markup.replace("<title>Switchboard</title>", &format!("<title>{}</title>", escaped(&self.name)));
        }
        if let Some((name, _)) = &self.logo {
            let kind = if name.ends_with(".svg") { "image/svg+xml" } else { "image/png" };
            markup =
                markup.replace("./page/icon.svg\" type=\"image/svg+xml", &format!("./page/{name}\" type=\"{kind}"));
        }
        markup
    }

    /// Its files: the module that tells the page of it, the style sheet with what it adds to `style`, its logo.
    pub(super) fn files(&self, style: &[u8]) -> Vec<(String, Vec<u8>)> {
        if self.name.is_empty() && self.logo.is_none() && self.accent.is_none() && self.starters.is_empty() {
            return Vec::new();
        }
        let name = if self.name.is_empty() { "Switchboard" } else { &self.name };
        let logo = self.logo.as_ref().map(|(name, _)| *name);
        let told = json!({"name": name, "logo": logo, "starters": self.starters});
        // It is data, also where whoever puts modules together looks for imports.
        let told = told.to_string().replace("import(", "import\\u0028");
        let mut files = vec![("brand.js".to_owned(), format!("export const brand = {told};\n").into_bytes())];
        files.extend(self.logo.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())));
        if let Some(accent) = self.accent {
            let mut style = style.to_vec();
            style.extend_from_slice(accent.rule().as_bytes());
            files.push(("style.css".to_owned(), style));
        }
        files
    }
}

/// The name under which a logo is served.
fn logo_name(file: &str) -> Option<&'static str> {
    match Path::new(file).extension()?.to_str()? {
        "svg" => Some("logo.svg"),
        "png" => Some("logo.png"),
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A colour: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Colour([u8; 3]);

impl Colour {
    const WHITE: Self = Self([0xff; 3]);
    const BLACK: Self = Self([0x11; 3]);

    fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix('#').filter(|hex| hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let number = u32::from_str_radix(hex, 16).ok()?;
        let [_, red, green, blue] = number.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// Its relative luminance (WCAG 2.2).
    fn luminance(self) -> f64 {
        let linear = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        let [red, green, blue] = linear;
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// A twentieth on the way to `other`.
    fn towards(self, other: Self, twentieths: u8) -> Self {
        let mixed = |of: u8, to: u8| {
            let parts = u32::from(of) * u32::from(20 - twentieths) + u32::from(to) * u32::from(twentieths);
            u8::try_from(parts / 20).unwrap_or(u8::MAX)
        };
        let ([a, b, c], [x, y, z]) = (self.0, other.0);
        Self([mixed(a, x), mixed(b, y), mixed(c, z)])
    }

    /// The colour as near to it as can be read on `ground`.
    fn readable_on(self, ground: Self) -> Self {
        let ink = if ground.luminance() > 0.5 { Self::BLACK } else { Self::WHITE };
        let shades = (0..=20).map(|twentieths| self.towards(ink, twentieths));
        shades.into_iter().find(|shade| shade.contrast(ground) >= CONTRAST).unwrap_or(ink)
    }

    /// The style sheet's colours that are made of it: itself, what is written on it, and its shade for grounds.
    fn rule(self) -> String {
        let [light, dark] = BACKGROUNDS.map(|ground| (self.readable_on(ground), ground));
        let ink = |of: Self| match of.contrast(Self::WHITE) >= CONTRAST {
            true => Self::WHITE,
            false => Self::BLACK,
        };
        let mut rule = String::from("\n:root {\n");
        let pairs = [
            ("accent", light.0, dark.0),
            ("on-accent", ink(light.0), ink(dark.0)),
            ("accent-soft", light.0.towards(light.1, 17), dark.0.towards(dark.1, 16)),
        ];
        for (name, light, dark) in pairs {
            _ = writeln!(rule, "  --{name}: light-dark({}, {});", light.hex(), dark.hex());
        }
        rule.push_str("}\n");
        rule
    }

    fn hex(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accent_can_be_read_and_written_on() {
        for text in ["#ffffff", "#000000", "#ffee00", "#1a7f6b", "#7a1fa2", "#808080", "#00ff00"] {
            let colour = Colour::parse(text).unwrap();
            for ground in BACKGROUNDS {
                let shade = colour.readable_on(ground);
                assert!(shade.contrast(ground) >= CONTRAST, "{text} on {ground:?}: {shade:?}");
                let ink = if shade.contrast(Colour::WHITE) >= CONTRAST { Colour::WHITE } else { Colour::BLACK };
                assert!(shade.contrast(ink) >= 4.0, "{text}: {ink:?} on {shade:?}");
            }
        }
        assert_eq!(Colour::parse("#1a7f6b").unwrap().readable_on(BACKGROUNDS[0]), Colour([0x1a, 0x7f, 0x6b]));
    }

    #[test]
    fn mistakes_are_told_by_their_keys() {
        let config = PageConfig {
            name: "x".repeat(61),
            logo: "logo.gif".to_owned(),
            accent: "red".to_owned(),
            starters: vec![" ".to_owned()],
            ..PageConfig::default()
        };
        let keys: Vec<_> = Brand::mistakes(&config).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["name", "accent", "starters", "logo"]);
        assert_eq!(Brand::mistakes(&PageConfig::default()), []);
    }

    #[test]
    fn a_name_is_text_in_the_markup() {
        let brand = Brand { name: "<b>A&B".to_owned(), ..Brand::default() };
        assert_eq!(brand.markup("<title>Switchboard</title>"), "<title>&lt;b&gt;A&amp;B</title>");
    }
}
