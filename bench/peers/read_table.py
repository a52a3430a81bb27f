"""Reads and encodes a table with pandas or polars: what `read_table` does, for comparison.

usage: read_table.py pandas|polars FILE TARGET [TIMES]

Numbers are scaled by mean and deviation, with an indicator where some are missing; texts become
codes, dates days, booleans numbers; the result is one array of single precision. Prints the
seconds of the fastest of some times.
"""

import sys
import time

import numpy as np


def scaled(x):
    x = x.astype(np.float64)
    missing = np.isnan(x)
    z = (x - np.nanmean(x)) / (np.nanstd(x) or 1.0)
    columns = [np.where(missing, 0.0, z)]
    return columns + ([missing] if missing.any() else [])


def cycles(seconds):
    missing = np.isnan(seconds)
    seconds = np.where(missing, 0.0, seconds)
    days = seconds / 86400.0
    week, year = 2 * np.pi * (days + 3) / 7, 2 * np.pi * days / 365.25
    parts = [np.sin(week), np.cos(week), np.sin(year), np.cos(year)]
    return scaled(np.where(missing, np.nan, days)) + parts


def with_pandas(path, target):
    import pandas

    read = pandas.read_parquet if path.endswith(".parquet") else pandas.read_csv
    frame = read(path)
    numbers, codes = [], []
    for name, column in frame.items():
        if name == target:
            continue
        if pandas.api.types.is_bool_dtype(column):
            numbers.append(column.to_numpy(dtype=np.float32))
        elif pandas.api.types.is_numeric_dtype(column):
            numbers.extend(scaled(column.to_numpy(dtype=np.float64)))
        elif pandas.api.types.is_datetime64_any_dtype(column):
            numbers.extend(cycles(column.astype("datetime64[s]").astype("int64").to_numpy(float)))
        else:
            try:
                times = pandas.to_datetime(column, format="ISO8601")
                numbers.extend(cycles(times.astype("datetime64[s]").astype("int64").to_numpy(float)))
            except (ValueError, TypeError):
                codes.append(column.astype("category").cat.codes.to_numpy() + 1)
    rows = np.stack(numbers + codes, axis=1).astype(np.float32)
    return rows, frame[target].to_numpy(dtype=np.float32)


def with_polars(path, target):
    import polars

    if path.endswith(".parquet"):
        frame = polars.read_parquet(path)
    else:
        frame = polars.read_csv(path, try_parse_dates=True, null_values=["NA", ""])
    numbers, codes = [], []
    for column in frame:
        if column.name == target:
            continue
        if column.dtype == polars.Boolean:
            numbers.append(column.cast(polars.Float32).fill_null(0.5).to_numpy())
        elif column.dtype.is_numeric():
            numbers.extend(scaled(column.cast(polars.Float64).to_numpy()))
        elif column.dtype.is_temporal():
            seconds = column.cast(polars.Datetime("ms")).dt.epoch("s").cast(polars.Float64)
            numbers.extend(cycles(seconds.to_numpy()))
        else:
            ranks = column.cast(polars.Categorical).to_physical().cast(polars.Int64) + 1
            codes.append(ranks.fill_null(0).to_numpy())
    rows = np.stack(numbers + codes, axis=1).astype(np.float32)
    return rows, frame[target].cast(polars.Float32).to_numpy()


def main():
    library, path, target, *times = sys.argv[1:]
    work = {"pandas": with_pandas, "polars": with_polars}[library]
    best = float("inf")
    for _ in range(int(times[0]) if times else 5):
        start = time.perf_counter()
        rows, _ = work(path, target)
        best = min(best, time.perf_counter() - start)
    print(f"{library}: {best:.3f} s for {rows.shape[0]} rows of {rows.shape[1]} numbers")


if __name__ == "__main__":
    main()
