"""The ways in which models write tool calls and reasoning, as one table.

A new model family is a row here and a fixture under ``fixtures/replies/``. Rows may share an opener: their bodies are
then tried one after another.
"""

from __future__ import annotations

from proxy.core.forms import Dialect, Form, JsonBody, Reasoning, SketchBody
from proxy.core.notations import (
    BEAM_TAGS,
    DEEPSEEK_CALL,
    ELEMENTS,
    FUNCTION_TAGS,
    FUNCTIONARY_CALL,
    HARMONY_ANSWER,
    HARMONY_CALL,
    HARMONY_THOUGHT,
    HORIZON_PAIRS,
    INKLING_NAME,
    JSON,
    JSON_LIST,
    KIMI_CALL,
    KIMI_TAGS,
    LABELLED_CALL,
    LOOSE_PYTHON,
    MINIMAX_TAGS,
    MISTRAL_CALL,
    MUSE_THOUGHT,
    PAIRS,
    PLAMO_CALL,
    PYTHON,
    SOLAR_CALL,
    STEP_TAGS,
    functions,
    invoke,
    messages,
)

THINK = Reasoning("<think>", "</think>")

_CALL_CLOSERS = ("</tool_call>", "</toolcall>", "</tool-call>", "</tool_call >")


DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        name="hermes",
        source="Nous Hermes 2 Pro, Qwen 2.5 and Qwen 3 chat templates; Toolgraft's own protocol",
        forms=(
            Form("<tool_call>", (LOOSE_PYTHON, JSON), _CALL_CLOSERS),
            *(Form(opener, (JSON,), _CALL_CLOSERS) for opener in ("<toolcall>", "<tool-call>")),
            Form("<tool_call ", (LABELLED_CALL,), _CALL_CLOSERS, kept=True),
        ),
        reasoning=(THINK, Reasoning("<thinking>", "</thinking>"), Reasoning("<thought>", "</thought>")),
        terminators=("<|im_end|>", "<|endoftext|>", "</s>", "<eos>"),
    ),
    Dialect(
        name="qwen3-coder",
        source="Qwen3-Coder, Qwen 3.5, Nemotron 3, Step 3.5, MiMo, Granite 4 and K-EXAONE chat templates; Qwen3-Coder's"
        " model card discussions: the outer tag is at times missing",
        forms=(
            Form("<tool_call>", (FUNCTION_TAGS, invoke()), _CALL_CLOSERS),
            Form("<function=", (FUNCTION_TAGS,), kept=True, declared=True),
        ),
    ),
    Dialect(
        name="glm",
        source="GLM 4.5 to 5, Ling 3, Spark 2.5 and Poolside chat templates; GLM at times makes tags of the names",
        forms=(Form("<tool_call>", (PAIRS, ELEMENTS), _CALL_CLOSERS),),
        terminators=("<|user|>", "<|observation|>"),
    ),
    Dialect(
        name="llama3",
        source="Llama 3.1 and 3.2 prompt formats; the JSON comes without a token as well",
        models=r"(?<!code)llama-?3(?!\d)",
        forms=(Form("<|python_tag|>", (PYTHON, JSON)), Form("<function=", (FUNCTION_TAGS,), kept=True, declared=True)),
        bare=True,
        terminators=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
    ),
    Dialect(
        name="pythonic",
        source="Llama 3.2 and 4 prompt formats, ToolACE; the list comes without tokens as well",
        models=r"(?<!code)llama-?(?:3\.2|4(?!\d))|toolace",
        forms=(Form("<|python_start|>", (PYTHON, JSON), ("<|python_end|>",)),),
        bare=True,
        terminators=("<|eot|>", "<|eom|>"),
    ),
    Dialect(
        name="mistral",
        source="mistral-common: instruct tokenizers v3 (a list of calls), v11 (name, [CALL_ID], [ARGS]) and v13",
        models=r"(?:mis|minis|mix|pix|magis|codes|devs)tral",
        forms=(Form("[TOOL_CALLS]", (JSON, MISTRAL_CALL), ("[/TOOL_CALLS]",)),),
        reasoning=(Reasoning("[THINK]", "[/THINK]"),),
    ),
    Dialect(
        name="deepseek-v3",
        source="DeepSeek V3 and R1 (name, then fenced JSON) and V3.1 (JSON) chat templates",
        models=r"deepseek",
        forms=(Form("<｜tool▁call▁begin｜>", (DEEPSEEK_CALL,), ("<｜tool▁call▁end｜>",)),),
        wrappers=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        terminators=("<｜end▁of▁sentence｜>",),
    ),
    Dialect(
        name="deepseek-v3.2",
        source="DeepSeek V3.2 and V4 encoding files (DSML)",
        models=r"deepseek-?v(?:3\.2|4)",
        forms=(
            Form("<｜DSML｜function_calls>", (invoke("｜DSML｜"),), ("</｜DSML｜function_calls>",)),
            Form("<｜DSML｜tool_calls>", (invoke("｜DSML｜"),), ("</｜DSML｜tool_calls>",)),
            Form("<｜DSML｜invoke", (invoke("｜DSML｜"),), kept=True),
        ),
    ),
    Dialect(
        name="deepseek-v4.1",
        source="DeepSeek V4.1 encoding file (DSML with a space in the tags)",
        models=r"deepseek-?v4\.1",
        forms=(
            Form("<｜DSML｜ calls>", (invoke("｜DSML｜ "),), ("</｜DSML｜ calls>",)),
            Form("<｜DSML｜ invoke", (invoke("｜DSML｜ "),), kept=True),
        ),
    ),
    Dialect(
        name="kimi-k2",
        source="Kimi K2 tool call guidance and chat template; Kimi-VL's thinking marks",
        models=r"kimi",
        forms=(Form("<|tool_call_begin|>", (KIMI_CALL,), ("<|tool_call_end|>",)),),
        reasoning=(Reasoning("◁think▷", "◁/think▷"),),
        wrappers=(
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_section_begin|>",
            "<|tool_call_section_end|>",
        ),
    ),
    Dialect(
        name="kimi-k3",
        source="Kimi K3 encoding file (XTML)",
        models=r"kimi-?k3",
        forms=(Form("<|open|>call ", (KIMI_TAGS,), kept=True),),
        reasoning=(
            Reasoning("<|open|>think<|sep|>", "<|close|>think<|sep|>", anywhere=True),
            Reasoning("<|open|>think<|sep|>", "<|open|>response<|sep|>", anywhere=True),
        ),
        wrappers=(
            "<|open|>response<|sep|>",
            "<|close|>response<|sep|>",
            "<|open|>tools<|sep|>",
            "<|close|>tools<|sep|>",
            "<|close|>message<|sep|>",
        ),
        terminators=("<|end_of_msg|>",),
    ),
    Dialect(
        name="minimax-m2",
        source="MiniMax M2 tool calling guide and chat template",
        models=r"minimax-?m2",
        forms=(Form("<minimax:tool_call>", (invoke(),), ("</minimax:tool_call>",)),),
        terminators=("[e~[",),
    ),
    Dialect(
        name="minimax-m3",
        source="MiniMax M3 chat template: arguments as nested elements",
        models=r"minimax-?m3",
        forms=(Form("]<]minimax[>[<tool_call>", (MINIMAX_TAGS,), ("]<]minimax[>[</tool_call>",)),),
        reasoning=(Reasoning("<mm:think>", "</mm:think>"),),
    ),
    Dialect(
        name="harmony",
        source="OpenAI harmony response format (gpt-oss); Beam chat template (the same, with <rfl:parameter> elements)",
        models=r"gpt-?oss|\bbeam\b",
        forms=messages(
            ("<|start|>", "<|end|><|start|>", "<|channel|>", "<|end|><|channel|>"),
            HARMONY_CALL,
            BEAM_TAGS,
            HARMONY_THOUGHT,
            HARMONY_ANSWER,
        ),
        terminators=("<|end|>", "<|return|>", "<|call|>"),
    ),
    Dialect(
        name="muse",
        source="Muse chat template: messages to a receiver, calls in <atem:…> tags",
        models=r"\bmuse\b",
        forms=(
            *messages(("<|start|>", "<|eom|><|start|>"), MUSE_THOUGHT, HARMONY_ANSWER),
            Form("<atem:function_calls>", (invoke("atem:"),), ("</atem:function_calls>",)),
        ),
    ),
    Dialect(
        name="gemma4",
        source="Gemma 4 chat template and prompt formatting guide",
        models=r"\bgemma-?4",
        forms=(Form("<|tool_call>", (SketchBody('<|"|>'),), ("<tool_call|>",)),),
        reasoning=(
            Reasoning("<|channel>thought\n", "<channel|>", anywhere=True),
            Reasoning("<|channel><|channel>thought\n", "<channel|>", anywhere=True),
            Reasoning("<|channel>", "<channel|>", anywhere=True),
        ),
        terminators=("<turn|>", "<end_of_turn>"),
    ),
    Dialect(
        name="functiongemma",
        source="FunctionGemma formatting guide",
        models=r"function-?gemma",
        forms=(Form("<start_function_call>", (SketchBody("<escape>"),), ("<end_function_call>",)),),
        terminators=("<start_function_response>",),
    ),
    Dialect(
        name="granite",
        source="Granite 3 chat templates",
        models=r"granite-?3",
        forms=(Form("<|tool_call|>", (JSON_LIST,)),),
        wrappers=("<|/tool_call|>",),
    ),
    Dialect(
        name="granite-3.2",
        source="Granite 3.2 model card: thinking=True, reasoning in words",
        models=r"granite-?3\.[23]",
        forms=(Form("<|tool_call|>", (JSON_LIST,)),),
        reasoning=(Reasoning("Here is my thought process:", "Here is my response:"),),
        auto=False,
    ),
    Dialect(
        name="granite-20b",
        source="Granite 20B function calling model card",
        models=r"granite-20b-func",
        forms=(Form("<function_call>", (JSON,), ("</function_call>",)),),
    ),
    Dialect(
        name="phi4-mini",
        source="Phi-4-mini model card and technical report",
        models=r"phi-?4-mini",
        forms=(Form("functools", (JSON_LIST,), head=True),),
    ),
    Dialect(
        name="lfm2",
        source="LFM2 model card and chat template",
        models=r"\blfm-?2",
        forms=(Form("<|tool_call_start|>", (PYTHON, JSON), ("<|tool_call_end|>",)),),
    ),
    Dialect(
        name="function-calls",
        source="OLMo 3 chat template (Python calls, one a line); Claude's older documentation (<invoke>)",
        models=r"olmo-?3",
        forms=(
            Form("<function_calls>", (invoke(), PYTHON, JSON), ("</function_calls>",)),
            Form("<invoke name=", (invoke(),), kept=True),
            Form("<invoke>", (JSON,), ("</invoke>",)),
        ),
    ),
    Dialect(
        name="nemotron",
        source="Llama-Nemotron and Nemotron Nano v2 chat templates",
        models=r"nemotron",
        forms=(Form("<TOOLCALL>", (JSON,), ("</TOOLCALL>",)),),
    ),
    Dialect(
        name="tool-calls",
        source="Jamba, Hunyuan-A13B, Apriel and MiniMax M1 chat templates (JSON); Hy-V3's (a section of calls)",
        models=r"jamba|hunyuan|apriel|\bhy-v3|minimax-?m1",
        forms=(Form("<tool_calls>", (JSON,), ("</tool_calls>",)),),
        reasoning=(Reasoning("", "[BEGIN FINAL RESPONSE]"),),
        wrappers=("<tool_calls>",),
    ),
    Dialect(
        name="hunyuan",
        source="Hunyuan-A13B model card: the answer stands between <answer> marks",
        models=r"hunyuan",
        forms=(Form("<tool_calls>", (JSON,), ("</tool_calls>",)),),
        reasoning=(Reasoning("<think>", "</think>\n<answer>\n"),),
        terminators=("</answer>",),
        auto=False,
    ),
    Dialect(
        name="ernie",
        source="ERNIE 4.5 Thinking chat template: the answer stands between <response> marks",
        models=r"ernie",
        forms=(Form("<tool_call>", (JSON,), ("</tool_call>",)),),
        reasoning=(Reasoning("<think>", "</think>\n\n<response>\n"),),
        terminators=("</response>",),
        auto=False,
    ),
    Dialect(
        name="command",
        source="Command R7B and Command A chat templates",
        models=r"command-[ar]|\bc4ai\b|cohere",
        forms=(Form("<|START_ACTION|>", (JSON,), ("<|END_ACTION|>",)),),
        reasoning=(Reasoning("<|START_THINKING|>", "<|END_THINKING|>", anywhere=True),),
        wrappers=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        terminators=("<|END_OF_TURN_TOKEN|>",),
    ),
    Dialect(
        name="internlm",
        source="InternLM 2 chat format description",
        models=r"internlm",
        forms=(Form("<|action_start|><|plugin|>", (JSON,), ("<|action_end|>",)),),
    ),
    Dialect(
        name="apertus",
        source="Apertus chat template",
        models=r"apertus",
        forms=(Form("<|tools_prefix|>", (JsonBody(keyed=True),), ("<|tools_suffix|>",)),),
        reasoning=(Reasoning("<|inner_prefix|>", "<|inner_suffix|>", anywhere=True),),
        terminators=("<|assistant_end|>",),
    ),
    Dialect(
        name="seed-oss",
        source="Seed-OSS chat template",
        models=r"seed-?oss",
        forms=(Form("<seed:tool_call>", (FUNCTION_TAGS, JSON), ("</seed:tool_call>",)),),
        reasoning=(Reasoning("<seed:think>", "</seed:think>"),),
        terminators=("<seed:eos>",),
    ),
    Dialect(
        name="longcat",
        source="LongCat-Flash chat template",
        models=r"longcat",
        forms=(Form("<longcat_tool_call>", (JSON, PAIRS), ("</longcat_tool_call>",)),),
        reasoning=(Reasoning("<longcat_think>", "</longcat_think>"),),
    ),
    Dialect(
        name="gigachat3",
        source="GigaChat 3 and 3.1 chat templates",
        models=r"gigachat",
        forms=(Form("<|function_call|>", (JSON,)), Form("<|message_sep|>\n\nfunction call<|role_sep|>\n", (JSON,))),
        terminators=("<|message_sep|>",),
    ),
    Dialect(
        name="step3",
        source="Step 3 chat template",
        models=r"step-?3(?!\.5)",
        forms=(Form("<｜tool_calls_begin｜>", (STEP_TAGS,), ("<｜tool_calls_end｜>",)),),
    ),
    Dialect(
        name="k2-horizon",
        source="K2 Horizon chat template",
        models=r"k2-horizon",
        forms=(Form("<ifm|tool_call>", (JSON, HORIZON_PAIRS), ("</ifm|tool_call>",)),),
        reasoning=(Reasoning("<ifm|think>", "</ifm|think>"),),
        wrappers=("<ifm|tool_calls>", "</ifm|tool_calls>"),
    ),
    Dialect(
        name="plamo3",
        source="PLaMo 3 chat template",
        models=r"plamo-?3",
        forms=(
            Form(
                "<|plamo:begin_tool_request:plamo|>",
                (PLAMO_CALL,),
                (
                    "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
                    "<|plamo:end_tool_request:plamo|>",
                ),
            ),
        ),
        reasoning=(Reasoning("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", anywhere=True),),
        wrappers=("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>"),
    ),
    Dialect(
        name="inkling",
        source="Inkling chat template",
        models=r"inkling",
        forms=(
            Form("<|message_model|>", (INKLING_NAME,), kept=True),
            Form("<|content_invoke_tool_json|>", (JSON,), ("<|end_message|>",)),
        ),
        reasoning=(Reasoning("<|content_thinking|>", "<|end_message|>", anywhere=True),),
        wrappers=("<|content_text|>", "<|content_invoke_tool_text|>", "<|end_message|>"),
    ),
    Dialect(
        name="dots",
        source="dots chat template",
        models=r"\bdots",
        forms=(Form("<dots_function_call>", (JSON, invoke()), ("</dots_function_call>",)),),
    ),
    Dialect(
        name="minicpm5",
        source="MiniCPM 5 chat template; its tags at times lose their space",
        models=r"minicpm-?5",
        forms=(
            Form("<function name=", (functions("<function name=", "<param name="),), kept=True),
            Form("<functionname=", (functions("<functionname=", "<paramname="),), kept=True),
        ),
    ),
    Dialect(
        name="solar",
        source="Solar Open chat template",
        models=r"\bsolar",
        forms=(Form("<|tool_call:begin|>", (SOLAR_CALL,), ("<|tool_call:end|>",)),),
        reasoning=(Reasoning("<|think|>", "<|end|>"),),
        wrappers=("<|end|><|begin|>assistant", "<|begin|>assistant", "<|content|>", "<|tool_calls|>"),
        terminators=("<|end|>", "<|calls|>", "<|flush|>"),
    ),
    Dialect(
        name="functionary",
        source="Functionary v3.2 chat template",
        models=r"functionary",
        forms=(Form(">>>", (FUNCTIONARY_CALL,), ()),),
        auto=False,
    ),
)

OWN = frozenset({"hermes", "qwen3-coder", "glm"})
"""The rows that share the tag of our own protocol: their calls are read whatever they name.

A call in the way of another family must be complete, valid and of a declared tool, unless that family's row was asked
for by name, or the model's name says that it is of that family.
"""
