//! Images inside the page.

use crate::base64;
use crate::text::rich;

/// Images side by side, as many to a row as fit.
#[derive(Debug, Clone, Default)]
pub struct Gallery {
    /// Shown under the images; empty for none.
    pub caption: String,
    /// The images, row by row.
    pub images: Vec<Image>,
}

/// An image of a [`Gallery`].
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// Contents of a PNG file.
    pub png: Vec<u8>,
    /// Shown under the image, and read out in its place.
    pub caption: String,
}

impl Gallery {
    pub(crate) fn to_html(&self) -> String {
        if self.images.is_empty() {
            return "<p class=\"note\">No images to show.</p>".to_owned();
        }
        let images: String = self.images.iter().map(Image::to_html).collect();
        let caption = match self.caption.as_str() {
            "" => String::new(),
            caption => format!("<figcaption>{}</figcaption>", rich(caption)),
        };
        format!("<figure class=\"gallery\"><div>{images}</div>{caption}</figure>")
    }
}

impl Image {
    fn to_html(&self) -> String {
        let caption = rich(&self.caption);
        let Some((width, height)) = png_size(&self.png) else {
            return format!("<figure><p class=\"note\">Not a PNG image.</p>{caption}</figure>");
        };
        // Small images are meant to be seen pixel by pixel.
        let class = if width.max(height) <= 64 { " class=\"pixels\"" } else { "" };
        format!(
            "<figure><img{class} width=\"{width}\" height=\"{height}\" alt=\"\" \
             src=\"data:image/png;base64,{}\"><figcaption>{caption}</figcaption></figure>",
            base64::encode(&self.png)
        )
    }
}

/// Width and height from the header of a PNG file, or `None` if it has none.
fn png_size(png: &[u8]) -> Option<(u32, u32)> {
    // Eight bytes of signature, then the chunk IHDR: length, name, width, height.
    let header = png.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    Some((number(0)?, number(4)?)).filter(|&(width, height)| width > 0 && height > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_comes_from_the_header() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        assert_eq!(png_size(&png), None);
        png.extend([0, 0, 1, 2, 0, 0, 0, 3]);
        assert_eq!(png_size(&png), Some((258, 3)));
        assert_eq!(png_size(b"GIF89a"), None);
    }

    #[test]
    fn what_is_no_png_becomes_a_note() {
        let image = Image { png: b"text".to_vec(), caption: "a & b".into() };
        let html = Gallery { images: vec![image], ..Gallery::default() }.to_html();
        assert!(html.contains("Not a PNG") && html.contains("a &amp; b") && !html.contains("<img"));
    }
}
