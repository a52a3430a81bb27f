"""Golden values for the reader of Zarr stores (crates/bayesmesh-data/tests/era5_store_tests.rs).

Writes small stores with Python's zarr and xarray to crates/bayesmesh-data/tests/fixtures/era5, each in another way to
store the same weather, and prints spot values of the real stores in ../shared/data (or BAYESMESH_DATA), which stand in
the tests.

usage: golden_zarr.py     (needs zarr 3, xarray, numpy; made with zarr 3.1.6, xarray 2026.9.0, numpy 2.4.6)
"""

import os
import pathlib
import shutil
import warnings

import numpy as np
import xarray as xr
import zarr
from numcodecs import Blosc

warnings.simplefilter("ignore")
ROOT = pathlib.Path(__file__).parent.parent
OUT = ROOT / "crates/bayesmesh-data/tests/fixtures/era5"


def weather():
    """Five steps of 6 h, two levels, 4 latitudes and 6 longitudes; the value says where it stands."""
    t, p, y, x = np.arange(5), [500, 850], np.linspace(60, -60, 4), np.arange(6) * 60.0
    value = lambda shape, *terms: sum(terms).astype("f4") + np.zeros(shape, "f4")
    T, Y, X = t[:, None, None], y[None, :, None], x[None, None, :]
    surface = value((5, 4, 6), 250 + T, Y / 100, X / 10000)
    P = np.array(p)[None, :, None, None]
    upper = value((5, 2, 4, 6), 40000 + 1000 * T[:, None], P + 0 * Y[:, None], Y[:, None] / 10, X[:, None] / 1000)
    time = np.datetime64("2020-02-28T18", "ns") + t * np.timedelta64(6, "h")
    return xr.Dataset(
        {
            "2m_temperature": (("time", "latitude", "longitude"), surface, {"units": "K"}),
            "geopotential": (("time", "level", "latitude", "longitude"), upper, {"units": "m**2 s**-2"}),
            "land_sea_mask": (("latitude", "longitude"), (surface[0] > 250).astype("f4")),
        },
        coords={"time": time, "level": ("level", p), "latitude": y, "longitude": x},
    )


def write(name, data, **settings):
    path = OUT / f"{name}.zarr"
    shutil.rmtree(path, ignore_errors=True)
    data.to_zarr(path, mode="w", **settings)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    data = weather()
    lz4 = {"compressors": (Blosc(cname="lz4", clevel=5, shuffle=1),)}
    each = lambda **settings: {name: dict(settings) for name in ["2m_temperature", "geopotential"]}
    chunks = lambda t, y, x: {"2m_temperature": (t, y, x), "geopotential": (t, 1, y, x)}
    merged = lambda a, b: {name: {**a[name], "chunks": b[name]} for name in a}
    # WeatherBench2's 240×121 stores: version 2, (…, longitude, latitude), latitude ascending.
    turned = data.transpose(..., "longitude", "latitude").isel(latitude=slice(None, None, -1))
    hours = {"time": {"units": "hours since 1959-01-01", "dtype": "int64"}}
    write("v2_lonlat", turned, zarr_format=2, consolidated=True, encoding={**merged(each(**lz4), chunks(2, 3, 3)), **hours})
    # Not consolidated, latitude descending, days as floats.
    days = {"time": {"units": "days since 1970-01-01", "dtype": "float64"}}
    write("v2_plain", data, zarr_format=2, consolidated=False, encoding=days)
    # Packed: 16-bit numbers with scale and offset, gzip, longitudes from -180.
    packed = {"2m_temperature": {"dtype": "int16", "scale_factor": 0.0005, "add_offset": 252.0, "_FillValue": -32768}}
    around = data.assign_coords(longitude=(data.longitude + 180) % 360 - 180).sortby("longitude")
    write("v2_packed", around, zarr_format=2, consolidated=True, encoding={**packed, **hours})
    # Version 3 with shards, Zstandard inside, both orders.
    shard = lambda one, two: {"2m_temperature": {"chunks": (1, *one), "shards": (4, *two)},
                              "geopotential": {"chunks": (1, 1, *one), "shards": (2, 2, *two)}}
    write("v3_sharded", data, zarr_format=3, consolidated=False, encoding={**shard((2, 3), (4, 6)), **hours})
    write("v3_lonlat", turned, zarr_format=3, consolidated=True, encoding={**shard((3, 2), (6, 4)), **hours})
    print(sum(f.stat().st_size for f in OUT.rglob("*") if f.is_file()), "bytes of stores")

    for place in [os.environ.get("BAYESMESH_DATA"), ROOT.parent / "shared/data"]:
        if place and pathlib.Path(place).exists():
            spots(pathlib.Path(place))
            break


def spots(place):
    """Values by index, with nothing but zarr."""
    for store, array, index in [
        ("weather/gfs_6h_240x121_2026-03-24_2026-05-06.zarr", "10m_u_component_of_wind", (0, 0, 60)),
        ("weather/gfs_6h_240x121_2026-03-24_2026-05-06.zarr", "10m_v_component_of_wind", (174, 239, 3)),
        ("weather/gfs_6h_240x121_with_850hPa_2026-04-19_2026-05-05.zarr", "u_component_of_wind", (3, 0, 200, 92)),
        ("weather/era5_240x121_7to8h_2026-03-25_2026-03-31.zarr", "mean_sea_level_pressure", (23, 8, 92)),
        ("weather/reanalysis_monthly_144x73_1981-12_2022-09.zarr", "geopotential", (489, 1, 17, 5)),
        ("era5/era5_19590102T00_64x32_tl31_wb2layout.zarr", "specific_humidity", (0, 12, 10, 20)),
        ("era5/eraint_monthly_240x121_wb2layout.zarr", "geopotential", (1, 1, 77, 33)),
    ]:
        group = zarr.open_group(place / store, mode="r")
        names = group[array].attrs["_ARRAY_DIMENSIONS"]
        at = {name: float(group[name][i]) for name, i in zip(names, index) if name in group}
        print(store, array, index, repr(float(group[array][index])), at)


if __name__ == "__main__":
    main()
