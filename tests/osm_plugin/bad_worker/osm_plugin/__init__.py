"""Replace the package ``osm_plugin``: the worker comes from this folder, and all other modules from the real
package.
"""

import os

__path__.append(os.environ["IBNUE_TEST_REAL"])
