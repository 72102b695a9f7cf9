// Requests to the proxy, with the key if one is wanted, and the feed of exchanges.

const ROOT = "/inspector";
let key = sessionStorage.getItem("toolgraft-key") ?? "";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (key) headers.authorization = `Bearer ${key}`;
  const response = await fetch(path.startsWith("/v1/") ? path : ROOT + path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // not one of the proxy's own errors
  }
  throw new Refused(response.status, message || `status ${response.status}`);
}

export const json = async (path, options) => (await ask(path, options)).json();

export function useKey(given) {
  key = given.trim();
  sessionStorage.setItem("toolgraft-key", key);
}

// Calls take(kind, exchanges) for each piece of news and tell(state) as the connection comes and goes, for ever.
export async function follow(take, tell, wantKey) {
  let pause = 500;
  for (;;) {
    try {
      const response = await ask("/feed");
      tell("live");
      pause = 500;
      await read(response.body.getReader(), take);
      tell("waiting");
    } catch (error) {
      if (error instanceof Refused && error.status === 401) {
        tell("locked");
        await wantKey(error.message);
        continue;
      }
      tell("waiting", error instanceof Refused ? error.message : "");
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 10_000);
  }
}

async function read(reader, take) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [kind, data] = event.split("\n");
      if (data?.startsWith("data: ")) take(kind.slice("event: ".length), JSON.parse(data.slice("data: ".length)));
    }
  }
}
