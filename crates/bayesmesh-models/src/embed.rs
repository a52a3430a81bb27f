//! Categories as numbers.

use burn::nn::{Embedding, EmbeddingConfig};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Numbers in an embedding at most, unless asked otherwise.
const WIDEST: usize = 64;

/// How many numbers stand for a category of a column with so many codes, unless asked otherwise.
pub(crate) fn embedding_width(codes: usize, asked: Option<usize>) -> usize {
    let rule = (1.6 * (codes as f64).powf(0.56)).round() as usize;
    asked.unwrap_or(rule.clamp(1, WIDEST))
}

/// An embedding for each categorical column, by how many codes it has.
pub(crate) fn embeddings(
    categories: &[usize],
    width: Option<usize>,
    device: &Device,
) -> Vec<Embedding> {
    let embedding = |&codes: &usize| {
        EmbeddingConfig::new(codes.max(1), embedding_width(codes, width)).init(device)
    };
    categories.iter().map(embedding).collect()
}

/// The numbers of a row, followed by the embeddings of its codes. What is no code of its column has
/// the embedding of code 0.
///
/// # Shapes
///
/// - input: `[rows, numbers + categories]`
/// - output: `[rows, features]`
pub(crate) fn embed(embeddings: &[Embedding], input: Tensor<2>) -> Tensor<2> {
    let categories = embeddings.len();
    if categories == 0 {
        return input;
    }
    let [rows, columns] = input.dims();
    let numbers = columns - categories;
    let codes = input.clone().narrow(1, numbers, categories);
    let limits = embeddings.iter().map(|embedding| embedding.weight.dims()[0] as f32);
    let limits = TensorData::new(limits.collect::<Vec<f32>>(), [1, categories]);
    let limits = Tensor::<2>::from_data(limits, &codes.device()).expand([rows, categories]);
    let known = codes.clone().lower(limits).bool_and(codes.clone().greater_equal_elem(0.0));
    let codes: Tensor<2, Int> = codes.mask_fill(known.bool_not(), 0.0).int();
    let mut parts = Vec::with_capacity(categories + 1);
    if numbers > 0 {
        parts.push(input.narrow(1, 0, numbers));
    }
    for (column, embedding) in embeddings.iter().enumerate() {
        let [_, width] = embedding.weight.dims();
        let embedded = embedding.forward(codes.clone().narrow(1, column, 1));
        parts.push(embedded.reshape([rows, width]));
    }
    Tensor::cat(parts, 1)
}
