"""Pictures of a benchmark as PNG files: bars of figures, paths of training, cells on the sphere, trees of labels."""

from .bar_charts import bars as bars
from .maps import PathPoint as PathPoint
from .maps import alignment_uniformity_path as alignment_uniformity_path
from .maps import measured_point as measured_point
from .projections import project as project
from .projections import project_to_sphere as project_to_sphere
from .projections import umap_or_pca as umap_or_pca
from .trees import dendrogram as dendrogram
from .voronoi import spherical_voronoi as spherical_voronoi
