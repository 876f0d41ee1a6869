"""Documents: the text of a document is translated, everything else stays as it is.

Every format finds the segments of a text and their places; the translation is the source with these replaced.
"""

from glassformer.pipelines.documents.folder import FolderResult as FolderResult
from glassformer.pipelines.documents.folder import translate_folder as translate_folder
from glassformer.pipelines.documents.formats import FORMATS as FORMATS
from glassformer.pipelines.documents.formats import is_document as is_document
from glassformer.pipelines.documents.formats import translate_bytes as translate_bytes
