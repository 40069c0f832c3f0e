"""Pictures of a benchmark as PNG files: bars of figures, paths of training, cells on the sphere, trees of labels."""

from .bar_charts import bars
from .paths import PathPoint, alignment_uniformity_path, measured_point
from .projections import project, project_to_sphere, umap_or_pca
from .trees import dendrogram
from .voronoi import spherical_voronoi

__all__ = [
    "PathPoint",
    "alignment_uniformity_path",
    "bars",
    "dendrogram",
    "measured_point",
    "project",
    "project_to_sphere",
    "spherical_voronoi",
    "umap_or_pca",
]
