//! What the columns of a table are taken for, and what becomes of their cells.

use std::path::Path;

use bayesmesh_data::table::{
    ColumnKind, Encoder, Found, Frame, Kinds, Reading, infer, read, target_classes,
};
use bayesmesh_files::testing::Scratch;

fn frame(text: &str) -> Frame {
    let scratch = Scratch::new();
    let path = scratch.path().join("table.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, &Reading::default(), &mut |_| {}).unwrap()
}

fn lines(header: &str, rows: usize, line: impl Fn(usize) -> String) -> Frame {
    frame(&(header.to_owned() + "\n" + &(0..rows).map(|row| line(row) + "\n").collect::<String>()))
}

fn kinds(found: &[Found]) -> Vec<(&str, ColumnKind)> {
    found.iter().map(|found| (found.name.as_str(), found.kind)).collect()
}

#[test]
fn columns_are_inferred() {
    use ColumnKind::{Boolean, Category, Constant, Date, Identifier, Leak, Number, Target, Text};
    let header = "key,customer_id,x,flag,town,day,same,none,words,nearly,copy,y";
    let table = lines(header, 60, |row| {
        let y = (row * row) as f64 / 7.0;
        format!(
            "k{row},{},{},{},t{},2024-01-{:02},4,,{},{},{},{y}",
            row * row + 3,
            row % 11,
            row % 3 == 0,
            row % 5,
            row % 28 + 1,
            if row % 2 == 0 { format!("word{row}") } else { "other".to_owned() },
            if row == 9 { "oops".to_owned() } else { format!("{row}.5") },
            3.0 * y + 1.0
        )
    });
    let found = infer(&table, &Kinds { targets: vec!["y".into()], ..Kinds::default() }).unwrap();
    let expected = [
        ("key", Identifier),
        ("customer_id", Identifier),
        ("x", Number),
        ("flag", Boolean),
        ("town", Category),
        ("day", Date),
        ("same", Constant),
        ("none", Constant),
        ("words", Text),
        ("nearly", Text),
        ("copy", Leak),
        ("y", Target),
    ];
    assert_eq!(kinds(&found), expected);
    assert!(found[9].note.contains("numbers but for `oops`"), "{}", found[9].note);
    // What the user says counts.
    let said = Kinds {
        targets: vec!["y".into()],
        numbers: vec!["customer_id".into(), "copy".into()],
        categories: vec!["x".into(), "words".into()],
        ignore: vec!["town".into()],
        ..Kinds::default()
    };
    let found = infer(&table, &said).unwrap();
    let kind = |name: &str| found.iter().find(|found| found.name == name).unwrap().kind;
    assert_eq!(["customer_id", "copy"].map(kind), [Number; 2]);
    assert_eq!(["x", "words"].map(kind), [Category; 2]);
    assert_eq!(kind("town"), ColumnKind::Ignored);
    let twice = Kinds { numbers: vec!["x".into()], dates: vec!["x".into()], ..Kinds::default() };
    assert!(infer(&table, &twice).unwrap_err().to_string().contains("two things"));
}

#[test]
fn a_category_that_tells_the_class_is_a_leak() {
    let table = lines("code,town,class", 60, |row| {
        format!("c{},t{},{}", row % 2, row % 5, ["no", "yes"][row % 2])
    });
    let said = Kinds { targets: vec!["class".into()], ..Kinds::default() };
    let found = infer(&table, &said).unwrap();
    assert_eq!([found[0].kind, found[1].kind], [ColumnKind::Leak, ColumnKind::Category]);
    let (classes, labels) = target_classes(&table, "class").unwrap();
    assert_eq!((classes, labels[1]), (vec!["no".to_owned(), "yes".to_owned()], Some(1)));
    let numbers = lines("class", 12, |row| ["10", "9", "2"][row % 3].to_owned());
    assert_eq!(target_classes(&numbers, "class").unwrap().0, ["2", "9", "10"]);
}

fn encoder(table: &Frame, rows: &[usize]) -> Encoder {
    let targets = vec!["y".to_owned()];
    let found = infer(table, &Kinds { targets: targets.clone(), ..Kinds::default() }).unwrap();
    Encoder::fit(table, &found, rows, &targets, &[]).unwrap()
}

/// Scales, categories and indicators are those of the training rows, and come back from text to the
/// last bit.
#[test]
fn encoding_is_learned_from_some_rows_only() {
    let text =
        "a,city,b,y\n1,Ulm,true,0\n3,Bonn,false,1\n5,Ulm,true,2\n,Bonn,,3\n1000,Kiel,true,4\n";
    let table = frame(text);
    let encoder = encoder(&table, &[0, 1, 2]);
    assert_eq!((encoder.numbers(), encoder.sizes()), (2, vec![2]));
    let encoded = encoder.encode(&table, true).unwrap();
    assert_eq!(encoded.width, 3);
    let first = (-2.0 / (8.0f64 / 3.0).sqrt()) as f32;
    // Of the cities only Ulm is there twice; the others share the code of unknown ones.
    let row = |row: usize| encoded.inputs[3 * row..][..3].to_vec();
    assert_eq!(row(0), [first, 1.0, 1.0]);
    assert_eq!(row(1), [0.0, -1.0, 0.0]);
    assert_eq!(row(3), [0.0, 0.0, 0.0]);
    let strange: Vec<usize> = encoded.unlike.iter().map(|(row, _)| *row).collect();
    assert_eq!(strange, [1, 3, 4]);
    assert!(encoded.unlike[2].1.contains("a is 1000, but was 1 to 5; city is `Kiel`"));
    let again = Encoder::from_json(&encoder.to_json()).unwrap();
    assert_eq!(again, encoder);
    // With a missing number among the training rows there is an indicator.
    let indicated = self::encoder(&table, &[0, 1, 2, 3]);
    assert_eq!(indicated.numbers(), 4);
    let encoded = indicated.encode(&table, true).unwrap();
    assert_eq!(&encoded.inputs[3 * 5..][..5], [0.0, 1.0, 0.0, 1.0, 2.0 - 1.0]);
}

#[test]
fn dates_become_parts_and_columns_may_come_in_any_order() {
    let table = lines("day,x,y", 40, |row| {
        format!("2023-{:02}-{:02} {:02}:00,{},{row}", row % 12 + 1, row % 28 + 1, row % 24, row % 7)
    });
    let encoder = encoder(&table, &(0..40).collect::<Vec<_>>());
    // Time, week, year and day as sine and cosine; and a number.
    assert_eq!(encoder.numbers(), 1 + 6 + 1);
    let mut turned = table.clone();
    turned.columns.reverse();
    let encoded = encoder.encode(&table, false).unwrap();
    assert_eq!(encoder.encode(&turned, false).unwrap(), encoded);
    assert!(encoded.inputs.iter().all(|x| x.is_finite() && x.abs() < 5.0));
    turned.columns.pop();
    let error = encoder.encode(&turned, false).unwrap_err().to_string();
    assert!(error.contains("there is no column `day`"), "{error}");
}

/// Dates with slashes are those of any other form, in the order that the whole column has, which
/// rows to predict then need not show.
#[test]
fn dates_with_slashes_are_read_in_one_order() {
    let day = |row: usize| (2020 + row % 3, row % 12 + 1, row % 28 + 1);
    let rows: Vec<usize> = (0..40).collect();
    let encoded_as = |table: &Frame| encoder(table, &rows).encode(table, false).unwrap();
    let plain = lines("day,y", 40, |row| {
        let (year, month, day) = day(row);
        format!("{year}-{month:02}-{day:02},{row}")
    });
    let american = lines("day,y", 40, |row| {
        let (year, month, day) = day(row);
        format!("{month}/{day}/{year},{row}")
    });
    let british = lines("day,y", 40, |row| {
        let (year, month, day) = day(row);
        format!("{day:02}/{month:02}/{year},{row}")
    });
    for table in [&american, &british] {
        assert_eq!(encoded_as(table), encoded_as(&plain));
    }
    let found = infer(&american, &Kinds::default()).unwrap();
    assert_eq!((found[0].kind, found[0].note.as_str()), (ColumnKind::Date, "month first"));
    let new = frame("day\n3/4/2021\n");
    let iso = frame("day\n2021-03-04\n");
    let american = Encoder::from_json(&encoder(&american, &rows).to_json()).unwrap();
    assert_eq!(american.encode(&new, false).unwrap(), american.encode(&iso, false).unwrap());
    let british = encoder(&british, &rows);
    assert_ne!(british.encode(&new, false).unwrap(), british.encode(&iso, false).unwrap());
    // What was never shown is not guessed.
    let error = encoder(&plain, &rows).encode(&new, false).unwrap_err().to_string();
    assert!(error.contains("column `day`: each of its dates can be read"), "{error}");
    let mixed = lines("day,y", 40, |row| match row % 2 {
        0 => format!("{}/31/2024,{row}", [1, 3, 5][row % 3]),
        _ => format!("31/{}/2024,{row}", [1, 3, 5][row % 3]),
    });
    let found = infer(&mixed, &Kinds::default()).unwrap();
    assert_eq!(found[0].kind, ColumnKind::Text);
    assert!(found[0].note.contains("has the day first and"), "{}", found[0].note);
}

#[test]
fn a_column_without_anything_for_training_is_told() {
    let table = frame("a,b,y\n,1,0\n,2,1\n7,3,2\n8,3,2\n");
    let targets = vec!["y".to_owned()];
    let found = infer(&table, &Kinds { targets: targets.clone(), ..Kinds::default() }).unwrap();
    let error = Encoder::fit(&table, &found, &[0, 1], &targets, &[]).unwrap_err().to_string();
    assert!(error.contains("column `a`: no row for training"), "{error}");
    assert!(read(Path::new("no.csv"), &Reading::default(), &mut |_| {}).is_err());
}
