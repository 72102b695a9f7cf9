import json

import pytest
from anthropic.types import ModelInfo

from proxy.core.model import Json
from proxy.wire.anthropic_messages.models import encode_model, encode_models


def test_one_page_has_them_all() -> None:
    models: list[Json] = [{"id": "a", "created": 1700000000, "object": "model"}, {"id": "b", "owned_by": "me"}]
    page = json.loads(encode_models(models))
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, "a", "b")
    assert page["data"][0] == {
        "type": "model",
        "id": "a",
        "display_name": "a",
        "created_at": "2023-11-14T22:13:20Z",
        "lifecycle": "active",
    }
    assert json.loads(encode_models([])) == {"data": [], "has_more": False, "first_id": None, "last_id": None}


@pytest.mark.parametrize("created", [None, 0, "2024", 1e30])
def test_a_date_that_is_not_known(created: Json) -> None:
    model = ModelInfo.model_validate_json(encode_model({"id": "a", "created": created}))
    assert model.created_at.year == 1970
