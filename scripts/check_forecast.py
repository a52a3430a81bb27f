"""Opens a store of forecasts as users do, with xarray, and checks what WeatherBench-X relies on.

usage: check_forecast.py FORECAST.zarr     (needs xarray and zarr 3)

Prints the variables and their dimensions; ends with an error that says what is wrong.
"""

import sys
import warnings

import numpy as np
import xarray as xr


def main(path):
    with warnings.catch_warnings():
        # A warning would be one for every user.
        warnings.simplefilter("error")
        data = xr.open_zarr(path)
    checks = {
        "time is decoded": np.issubdtype(data.time.dtype, np.datetime64),
        "prediction_timedelta is decoded": np.issubdtype(data.prediction_timedelta.dtype, np.timedelta64),
        "times ascend": bool((np.diff(data.time.values) > np.timedelta64(0)).all()),
        "leads ascend": bool((np.diff(data.prediction_timedelta.values) > np.timedelta64(0)).all()),
        "number counts from 0": list(data.number.values) == list(range(data.sizes["number"])),
        "latitudes ascend within the globe": bool((np.diff(data.latitude) > 0).all() and (abs(data.latitude) <= 90).all()),
        "longitudes go from 0 around the globe": float(data.longitude[0]) >= 0 and float(data.longitude[-1]) < 360,
        "there are variables": len(data.data_vars) > 0,
    }
    for name, array in data.data_vars.items():
        print(f"{name}: {dict(array.sizes)} [{array.attrs.get('units', 'no unit')}]")
        expected = ["time", "prediction_timedelta", "number", "level", "longitude", "latitude"]
        if "level" not in array.dims:
            expected.remove("level")
        checks[f"{name} has its dimensions in order"] = list(array.dims) == expected
        checks[f"{name} has a unit"] = "units" in array.attrs
        checks[f"{name} is float32"] = array.dtype == np.float32
        first = array.isel(time=0, prediction_timedelta=0, number=0).values
        checks[f"{name} has numbers"] = bool(np.isfinite(first).any())
    print("time", data.time.values[[0, -1]], "leads", data.prediction_timedelta.values[[0, -1]])
    valid = data.time.values[0] + data.prediction_timedelta.values[0]
    checks["valid times can be computed"] = np.issubdtype(valid.dtype, np.datetime64)
    wrong = [name for name, holds in checks.items() if not holds]
    if wrong:
        sys.exit("wrong: " + "; ".join(wrong))
    print(f"{len(checks)} checks passed")


if __name__ == "__main__":
    main(sys.argv[1])
