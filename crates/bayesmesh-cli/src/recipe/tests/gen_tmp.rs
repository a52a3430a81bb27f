#[test]
fn gen_cases() {
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"smaples = 4"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"lr = 1e-3"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1"#, r#"colour = 3"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"name = "trial""#, r#"name = "trial"
epochs = 10"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"[train]"#, r#"[trian]"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "squared-error-of-mean""#, r#"kind = "crps"
freedom = 4"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "mc-dropout""#, r#"kind = "mc-dropout"
initial_std = 0.1
prior = { kind = "normal" }"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "mc-dropout""#, r#"kind = "mean-field"
prior = { kind = "normal", weight = 0.5 }"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "squared-error-of-mean""#, r#"kind = "gaussian"
foo = 1"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"[model]
kind = "mlp"
dropout = 0.1
"#, r#""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"path = "load.csv"
"#, r#""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "load"
"#, r#""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 4
[schedule]
kind = "warmup""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"name = "trial"
"#, r#""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = "4""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 4.0"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 0
batch = -64"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"seed = 9223372036854775808"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"heat = inf
clip_norm = nan"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1"#, r#"dropout = 1.0"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "squared-error-of-mean""#, r#"kind = "student-t-mixture"
freedom = 2"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"exact = "true""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"exact = 1"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"reduce = "reproducable""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "mc-dropout""#, r#"kind = "hmc""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1"#, r#"dropout = 0.1
hidden = 128"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1"#, r#"dropout = 0.1
hidden = [128, 0, "x"]"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"path = "load.csv""#, r#"path = "load.csv"
split = [0.7, 0.3]"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"path = "load.csv""#, r#"path = 2015-01-01"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"path = "load.csv""#, r#"path = """#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "mc-dropout""#, r#"kind = "mean-field"
prior = "normal""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"[train]"#, r#"[[train]]"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = "#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples 4"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"[train]"#, r#"[train"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 4
samples = 5"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"path = "load.csv""#, r#"path = "load.csv"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1"#, r#"dropout = 0"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1
"#, r#""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"dropout = 0.1"#, r#"dropout = 0.1
hidden = []"#)], &[]));
println!("@@@{}", super::refusal(&[(r#""squared-error-of-mean""#, r#""cross-entropy-of-mean""#)], &[]));
println!("@@@{}", super::refusal(&[(r#""squared-error-of-mean""#, r#""gaussian-of-draws""#)], &[r#"train.samples=1"#]));
println!("@@@{}", super::refusal(&[(r#""squared-error-of-mean""#, r#""crps"
fair = true"#), (r#"samples = 4"#, r#"samples = 1"#)], &[]));
println!("@@@{}", super::refusal(&[(r#""squared-error-of-mean""#, r#""gaussian-of-draws""#), (r#""mc-dropout""#, r#""point""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"path = "load.csv""#, r#"path = "load.csv"
split = [0.6, 0.1, 0.2]"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"kind = "load"
path = "load.csv""#, r#"kind = "load-synthetic"
days = 9"#)], &[]));
println!("@@@{}", super::refusal(&[(r#""mc-dropout""#, r#""mean-field"
kl = "analytic"
prior.kind = "scale-mixture""#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"heat = 0.1"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"kl_warmup = 10"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 4
[schedule]
kind = "cosine"
floor = 0.01"#)], &[]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 4
[evaluate]
levels = [0.9, 0.5]"#)], &[]));
println!("@@@{}", super::refusal(&[(r#""trial""#, r#""a/b""#)], &[]));
println!("@@@{}", super::refusal(&[], &[r#"train.smaples=4"#]));
println!("@@@{}", super::refusal(&[], &[r#"tarin.samples=4"#]));
println!("@@@{}", super::refusal(&[], &[r#"samples=4"#]));
println!("@@@{}", super::refusal(&[], &[r#"train.samples=four"#]));
println!("@@@{}", super::refusal(&[], &[r#"posterior.kind=mean_field"#]));
println!("@@@{}", super::refusal(&[], &[r#"train.samples.all=4"#]));
println!("@@@{}", super::refusal(&[], &[r#"train.samples"#, r#"train..samples=4"#, r#"train.steps="#, r#"=3"#]));
println!("@@@{}", super::refusal(&[(r#"samples = 4"#, r#"samples = 0"#)], &[r#"data.inputs=0"#, r#"data.outputs=0"#]));
println!("@@@");}