"""Draw a fabric and its tables as SVG, as DOT, or as one HTML page that needs no network.

:func:`picture_of` collects the contents of a picture as a :class:`Picture`.  The writers :func:`svg_text`,
:func:`dot_text` and :func:`page_text` return the text of a file.
"""

from routing.draw.dot import dot_text
from routing.draw.page import page_text
from routing.draw.picture import Picture, picture_of
from routing.draw.report import Report
from routing.draw.svg import svg_text

__all__ = ["Picture", "Report", "dot_text", "page_text", "picture_of", "svg_text"]
