//! The name of this machine.

use std::{env, fs};

/// The host name as far as it is known without asking the network, fit for a file name.
pub fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .ok()
        .or_else(|| env::var("HOSTNAME").ok())
        .or_else(|| env::var("COMPUTERNAME").ok())
        .unwrap_or_default();
    plain(&name)
}

fn plain(name: &str) -> String {
    let plain: String = name
        .trim()
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
            _ => '_',
        })
        .collect();
    if plain.is_empty() { "localhost".into() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_file_names() {
        assert_eq!(plain("node-17.cluster\n"), "node-17.cluster");
        assert_eq!(plain("a/b c"), "a_b_c");
        assert_eq!(plain(" \n"), "localhost");
        assert_eq!(plain(&name()), name());
    }
}
