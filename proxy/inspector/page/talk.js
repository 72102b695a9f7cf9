// A request's JSON as a conversation, whichever vendor's it is. Returns null for what is none.

export function conversation(text) {
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    return null;
  }
  if (body === null || typeof body !== "object") return null;
  const turns = [];
  for (const system of [body.system, body.instructions]) if (system) turns.push(turn("system", system));
  if (Array.isArray(body.messages)) turns.push(...body.messages.map(message));
  if (typeof body.input === "string") turns.push(turn("user", body.input));
  else if (Array.isArray(body.input)) turns.push(...body.input.map(item));
  return turns.length ? turns : null;
}

const turn = (role, content, more = []) => ({ role, parts: [...parts(content), ...more] });

function message(given) {
  if (given === null || typeof given !== "object") return turn("?", given);
  const calls = Array.isArray(given.tool_calls) ? given.tool_calls : given.function_call ? [given.function_call] : [];
  const reasoning = given.reasoning_content ?? given.reasoning;
  const more = calls.map((call) => callPart((call?.function ?? call?.custom ?? call)?.name, (call?.function ?? call?.custom ?? call)?.arguments));
  const role = String(given.role ?? "?");
  const told = role === "tool" || role === "function" ? [{ kind: "result", name: given.tool_call_id ?? given.name, text: plain(given.content) }] : null;
  if (told) return { role, parts: told };
  return { role, parts: [...(reasoning ? [{ kind: "reasoning", text: plain(reasoning) }] : []), ...parts(given.content), ...more] };
}

function item(given) {
  switch (given?.type) {
    case "function_call":
    case "custom_tool_call":
      return { role: "assistant", parts: [callPart(given.name, given.arguments ?? given.input)] };
    case "function_call_output":
    case "custom_tool_call_output":
      return { role: "tool", parts: [{ kind: "result", name: given.call_id, text: plain(given.output) }] };
    case "reasoning":
      return { role: "assistant", parts: [...parts(given.content), ...parts(given.summary)].map((part) => ({ ...part, kind: "reasoning" })) };
    default:
      return given?.role ? message(given) : turn(String(given?.type ?? "?"), given);
  }
}

function parts(content) {
  if (content === null || content === undefined || content === "") return [];
  if (typeof content === "string") return [{ kind: "text", text: content }];
  if (!Array.isArray(content)) return [{ kind: "other", text: plain(content) }];
  return content.map((part) => {
    if (typeof part === "string") return { kind: "text", text: part };
    if (typeof part?.text === "string") return { kind: "text", text: part.text };
    if (part?.type === "thinking") return { kind: "reasoning", text: plain(part.thinking) };
    if (part?.type === "tool_use") return callPart(part.name, part.input);
    if (part?.type === "tool_result") return { kind: "result", name: part.tool_use_id, text: plain(part.content) };
    return { kind: "other", text: plain(part) };
  });
}

const callPart = (name, value) => ({ kind: "call", name: String(name ?? "?"), text: plain(value) });

function plain(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((part) => typeof part?.text === "string")) return value.map((part) => part.text).join("\n");
  return JSON.stringify(value ?? null, null, 2);
}
