//! Numbers for readers: thousands separators and a true minus sign.

/// `value` with `decimals` digits after the point and commas between thousands.
///
/// What is not a finite number becomes a dash, so that a table stays readable.
///
/// ```
/// use bayesmesh_report::format_number;
/// assert_eq!(format_number(1273.96, 0), "1,274");
/// assert_eq!(format_number(-1234567.891, 2), "−1,234,567.89");
/// assert_eq!(format_number(f64::NAN, 2), "–");
/// ```
pub fn format_number(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let digits = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    // A negative value that rounds to zero is zero.
    let negative = value < 0.0 && digits.bytes().any(|b| (b'1'..=b'9').contains(&b));
    let mut text = String::with_capacity(digits.len() + whole.len() / 3 + 3);
    if negative {
        text.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// The label of a tick at `value` where neighbouring ticks are `step` apart: as many decimals as
/// tell the ticks apart, and powers of ten where plain digits would be long.
pub(crate) fn format_tick(value: f64, step: f64) -> String {
    let size = value.abs().max(step);
    if value == 0.0 {
        "0".to_owned()
    } else if size >= 1e7 || step < 1e-5 {
        scientific(value, step)
    } else {
        // Steps are 1, 2 or 5 times a power of ten, so their first digit is their last. The
        // small addition keeps 0.001, whose logarithm may round below −3, at three decimals.
        let decimals = (-(step.log10() + 1e-9).floor()).max(0.0);
        format_number(value, decimals as usize)
    }
}

fn scientific(value: f64, step: f64) -> String {
    let exponent = (value.abs().log10() + 1e-9).floor();
    let digits = (exponent - (step.log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize;
    let mantissa = format_number(value / 10f64.powf(exponent), digits);
    let power = superscript(exponent as i32);
    match mantissa.as_str() {
        "1" => format!("10{power}"),
        "−1" => format!("−10{power}"),
        _ => format!("{mantissa}×10{power}"),
    }
}

fn superscript(exponent: i32) -> String {
    exponent
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '0' => '⁰',
            // The superscripts four to nine follow each other in Unicode.
            digit => {
                char::from_u32(u32::from(digit) - u32::from('4') + u32::from('⁴')).unwrap_or(digit)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_and_signs_kept() {
        assert_eq!(format_number(0.0, 0), "0");
        assert_eq!(format_number(999.0, 0), "999");
        assert_eq!(format_number(1000.0, 1), "1,000.0");
        assert_eq!(format_number(123456.0, 0), "123,456");
        assert_eq!(format_number(-0.004, 2), "0.00");
        assert_eq!(format_number(f64::INFINITY, 2), "–");
    }

    #[test]
    fn ticks_have_the_decimals_of_their_step() {
        assert_eq!(format_tick(0.5, 0.1), "0.5");
        assert_eq!(format_tick(0.25, 0.05), "0.25");
        assert_eq!(format_tick(0.001, 0.001), "0.001");
        assert_eq!(format_tick(60000.0, 5000.0), "60,000");
        assert_eq!(format_tick(-20.0, 10.0), "−20");
    }

    #[test]
    fn long_ticks_are_powers_of_ten() {
        assert_eq!(format_tick(1e8, 1e8), "10⁸");
        assert_eq!(format_tick(2.5e7, 5e6), "2.5×10⁷");
        assert_eq!(format_tick(-4e-6, 2e-6), "−4×10⁻⁶");
        assert_eq!(superscript(-1234567890), "⁻¹²³⁴⁵⁶⁷⁸⁹⁰");
    }
}
