"""Documents: what a reader reads is translated, everything else stays as it is.

Every format finds the passages of a text with their places; what is written is the source with these replaced.
"""

from glassformer.pipelines.documents.folder import Outcome as Outcome
from glassformer.pipelines.documents.folder import translate_file as translate_file
from glassformer.pipelines.documents.folder import translate_folder as translate_folder
from glassformer.pipelines.documents.formats import FORMATS as FORMATS
from glassformer.pipelines.documents.formats import is_document as is_document
from glassformer.pipelines.documents.formats import translate_bytes as translate_bytes
