"""Models in the formats of other tools: tables, arrays, scikit-learn, ONNX, MLflow. Nothing is pickled.

=====================  =================================================================================
`door`                 `export`: the format by name or by the ending of the file
`linear`               what all of them need: names, weights, thresholds
`csv_export`           the labels and their figures, safe to open in a spreadsheet
`jsonl_export`         the same with the labels that each resembles
`npz_export`           the arrays, for numpy
`safetensors_export`   the arrays, mapped or loaded without running code
`sklearn_export`       a plain scikit-learn estimator that does not need streamlabel
`onnx_export`          a graph from features to scores and label names
`mlflow_export`        a pyfunc directory, code and arrays
=====================  =================================================================================
"""

from streamlabel.exchange.door import FORMATS, export
from streamlabel.exchange.sklearn_export import to_sklearn

__all__ = ["FORMATS", "export", "to_sklearn"]
