"""Models in the formats of other tools: tables, arrays, scikit-learn, ONNX, MLflow. Nothing is pickled.

==================  ==============================================================================
`export`            the format by name or by the ending of the file; tables of labels
`linear`            what all of them need: names, weights, thresholds; arrays for numpy and safetensors
`sklearn_export`    a plain scikit-learn estimator that does not need streamlabel
`onnx_export`       a graph from features to scores and label names
`mlflow_export`     a pyfunc directory, code and arrays
==================  ==============================================================================
"""
