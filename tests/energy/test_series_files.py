"""Carbon as its publishers hand it out, and values that nothing has, refused by row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.energy import read_series
from windtunnel.energy.series_files import CARBON, TARIFF, WATTS, Quantity
from windtunnel.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

#: The portal's headings of 2024 and of 2022.
MAPS = (
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),"
    "Carbon intensity gCO₂eq/kWh (Life cycle),Carbon-free energy percentage (CFE%),"
    "Renewable energy percentage (RE%),Data source,Data estimated,Data estimation method"
)
OLDER_MAPS = (
    "Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct),"
    "Carbon Intensity gCO₂eq/kWh (LCA),Low Carbon Percentage,Renewable Percentage,"
    "Data Source,Data Estimated,Data Estimation Method"
)
MAPS_ROWS = (
    "2024-01-01 00:00:00,Germany,Germany,DE,310.5,362.25,60.1,55.2,entsoe.eu,false,",
    "2024-01-01 01:00:00,Germany,Germany,DE,300.0,350.0,60.1,55.2,entsoe.eu,true,TIME_SLICER",
)
UNITS = {"region": "CAISO_NORTH", "signal_type": "co2_moer", "units": "lbs_co2_per_mwh"}


def in_file(tmp_path: Path, content: str | dict[str, Any]) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    file = tmp_path / "carbon.any"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("\n".join([MAPS, *MAPS_ROWS]), [362.25, 350]),
        ("\n".join([OLDER_MAPS, *MAPS_ROWS]), [362.25, 350]),
        (
            {
                "zone": "DE",
                "history": [
                    {"zone": "DE", "carbonIntensity": 302, "datetime": "2024-04-25T18:00:00.000Z"},
                    {"zone": "DE", "carbonIntensity": 290.5, "datetime": "2024-04-25T19:00:00Z"},
                ],
            },
            [302, 290.5],
        ),
        (
            {
                "meta": UNITS,
                "data": [
                    {"point_time": "2024-02-15T00:00:00+00:00", "value": 870},
                    {"point_time": "2024-02-15T01:00:00+00:00", "value": 1000.0},
                ],
            },
            [394.625362, 453.59237],
        ),
        (
            "point_time,value\n2024-02-15 00:00:00+00:00,870\n2024-02-15 01:00:00+00:00,1000\n",
            [394.625362, 453.59237],
        ),
        (
            (
                "timestamp,MOER,MOER version,frequency\n"
                "2020-02-01 00:00:00+00:00,870,3.0,300\n2020-02-01 01:00:00+00:00,1000,3.0,300\n"
            ),
            [394.625362, 453.59237],
        ),
    ],
)
def test_published_files_as_they_come(
    tmp_path: Path, content: str | dict[str, Any], values: list[float]
) -> None:
    series = read_series(in_file(tmp_path, content), CARBON)
    assert series.time.tolist() == [0, 3600]
    assert series.values.tolist() == pytest.approx(values)


POINT = {"point_time": "2024-02-15T00:00:00+00:00", "value": 870}


@pytest.mark.parametrize(
    ("content", "of", "row", "column"),
    [
        ("time,g\n0,400\n1,20000\n", CARBON, 3, "g"),
        ("time,price\n0,1e300\n", TARIFF, 2, "price"),
        ("time,price\n0,-2e6\n", TARIFF, 2, "price"),
        ("time,watts\n0,2e12\n", WATTS, 2, "watts"),
        ("time,g\n1e200,4\n", CARBON, 2, "time"),
        ("point_time,value\n2024-02-15,30000\n", CARBON, 2, "value"),
        ("\n".join([MAPS, MAPS_ROWS[0], MAPS_ROWS[1].replace("DE", "FR")]), CARBON, 3, "Zone id"),
        ("\n".join([MAPS, MAPS_ROWS[0].replace("362.25", "")]), CARBON, 2, None),
        ("\n".join([MAPS, MAPS_ROWS[0] + ",1"]), CARBON, 2, None),
        ("\n".join([MAPS, *MAPS_ROWS]), TARIFF, None, None),  # no file of prices
        ({"meta": UNITS | {"units": "kg"}, "data": [POINT]}, CARBON, None, "meta.units"),
        ({"meta": UNITS, "data": [POINT, POINT]}, CARBON, None, "[1].point_time"),
        ({"meta": UNITS, "data": [POINT | {"value": True}]}, CARBON, None, "[0].value"),
        ({"meta": UNITS, "data": [{}]}, CARBON, None, "[0]"),
        ({"zone": "DE", "history": []}, CARBON, None, None),
        ({"zone": "DE"}, CARBON, None, None),
        ("{", CARBON, 1, None),
    ],
)
def test_what_is_refused_by_row(
    tmp_path: Path, content: str | dict[str, Any], of: Quantity, row: int | None, column: str | None
) -> None:
    with pytest.raises(TraceError) as caught:
        read_series(in_file(tmp_path, content), of)
    assert caught.value.row == row
    assert column is None or caught.value.column == column
