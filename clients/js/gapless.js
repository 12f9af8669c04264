/**
 * A client of the Gapless HTTP gateway for browsers, Node, Deno and Bun, without dependencies.
 *
 * Every matching event published after `subscription.ready` is delivered, exactly once, even if connections break:
 * a stream continues after the last event that the application took, at this broker or another one of `urls`.
 *
 * A stream is read only as fast as the application takes events. A slow application lags and is served from history.
 *
 * @module
 */

/** @typedef {string | number | boolean} AttributeValue */

/**
 * An event to publish. The payload is one of `data`, `text` and `data_base64`.
 * @typedef {object} Draft
 * @property {Record<string, AttributeValue>} [attributes]
 * @property {string} [id] identifies the event, so that a retry does not publish it again; random by default
 * @property {unknown} [data] any JSON value
 * @property {string} [text]
 * @property {string} [data_base64]
 * @property {string[]} [causes] positions of the direct causes of this event
 */

/**
 * A delivered event.
 * @typedef {object} Event
 * @property {string} id `publisher:number`
 * @property {string} publisher
 * @property {number} number
 * @property {string} [position]
 * @property {string} [time]
 * @property {Record<string, AttributeValue>} attributes
 * @property {unknown} [data]
 * @property {string} [text]
 * @property {string} [data_base64]
 * @property {boolean} [redelivered]
 */

/** @typedef {{id: string, duplicate: boolean, position?: string}} Published */

/**
 * @typedef {object} ClientOptions
 * @property {string | (() => string | Promise<string>)} [token] authenticates the user; a function is called for each request
 * @property {number} [timeoutMs] how long a call is retried; 30 s by default
 * @property {number} [idleMs] how long a stream can be silent before it is reconnected; 45 s by default (the gateway sends
 *   data every 15 s)
 * @property {typeof globalThis.fetch} [fetch] a replacement for the global `fetch`
 */

/**
 * @typedef {object} SubscribeOptions
 * @property {string} [since] a position, "earliest", a time, or an age such as "10m"
 * @property {string} [until] the position at which the stream ends; "now" is the newest one
 * @property {string} [resume] the `cursor` of an earlier subscription, from which to continue
 * @property {AbortSignal} [signal]
 * @property {(gap: Skipped) => void} [onSkipped] called with history that no broker has any more; without it, the
 *   iteration throws a `SkippedError`, and can be continued
 * @property {(state: "connected" | "disconnected" | "caught-up", reason?: Error) => void} [onState]
 */

/**
 * @typedef {object} DurableOptions
 * @property {string} [filter]
 * @property {"manual" | "auto"} [ack] with "auto", the gateway acknowledges the events it has sent
 * @property {boolean} [share] share the events with the other members of the same subscription
 * @property {boolean} [replace] replace the filter if the subscription has another one
 * @property {AbortSignal} [signal]
 * @property {(state: "connected" | "disconnected" | "caught-up", reason?: Error) => void} [onState]
 */

/** @typedef {{detail: string, lost: Record<string, unknown>, gap: [string, string] | null}} Skipped */
/** @typedef {{name: string, id: string, data: any}} Message a server-sent event */

const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 5_000;
const ACKS_MAX = 1_000;

/** A problem that the gateway reported (RFC 9457), or a connection that failed permanently. */
export class GaplessError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, type?: string, position?: number, [member: string]: unknown}} [problem]
   * @param {unknown} [cause]
   */
  constructor(message, problem = {}, cause = undefined) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "GaplessError";
    /** The problem document; empty if the gateway was not reached. */
    this.problem = problem;
    /** @type {number} The HTTP status, or 0. */
    this.status = problem.status ?? 0;
    /** @type {string} The kind of problem, such as "invalid-filter". */
    this.kind = (problem.type ?? "").split("#")[1] ?? "";
  }

  /** Whether a later attempt may succeed. */
  get isTransient() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Reports requested history that no broker has any more. The iteration can be continued. */
export class SkippedError extends GaplessError {
  /** @param {Skipped} skipped */
  constructor(skipped) {
    super(skipped.detail);
    this.name = "SkippedError";
    /** The missing numbers by publisher. */
    this.lost = skipped.lost;
    /** The positions between which events are missing, if they are known. */
    this.gap = skipped.gap;
  }
}

/** A client of one network. It opens connections only for calls and subscriptions. */
export class Client {
  /** @type {string[]} */ #urls;
  /** @type {ClientOptions} */ #options;
  #at = 0;

  /**
   * @param {string | string[]} urls the HTTP addresses of brokers, such as "http://127.0.0.1:8400"; with several, the client
   *   uses another one when the current one is unreachable
   * @param {ClientOptions} [options]
   */
  constructor(urls, options = {}) {
    this.#urls = (Array.isArray(urls) ? urls : [urls]).map((url) => url.replace(/\/+$/, ""));
    if (!this.#urls.length) throw new GaplessError("a client needs the URL of at least one broker");
    this.#options = options;
  }

  /** The broker that the client uses now. */
  get url() {
    return this.#urls[this.#at];
  }

  /** @returns {number} */
  get idleMs() {
    return this.#options.idleMs ?? 45_000;
  }

  /** Use the next broker from now on. */
  turn() {
    this.#at = (this.#at + 1) % this.#urls.length;
  }

  /**
   * Publish one event; resolves when f + 1 brokers have it. Retries use the same id, so the event is not published
   * twice.
   * @param {Draft} event
   * @returns {Promise<Published>}
   */
  async publish(event) {
    return await this.#publish({ ...event, id: event.id ?? crypto.randomUUID() });
  }

  /**
   * Publish up to 1,000 events in order; resolves when all of them are confirmed.
   * @param {Draft[]} events
   * @returns {Promise<{events: Published[], position?: string}>}
   */
  async publishMany(events) {
    return await this.#publish(events.map((event) => ({ ...event, id: event.id ?? crypto.randomUUID() })));
  }

  /** @param {unknown} body @returns {Promise<any>} */
  async #publish(body) {
    return (await this.request("POST", "/events", { body })).json();
  }

  /**
   * Subscribe. The result is an async iterable of events. `subscription.ready` resolves when the starting cut is fixed.
   * @param {string} [filter]
   * @param {SubscribeOptions} [options]
   * @returns {Subscription}
   */
  subscribe(filter = "TRUE", options = {}) {
    const { since = "", until = "", resume = "" } = options;
    return new Subscription(this, { filter, since, until }, { ...options, resume });
  }

  /**
   * Read history: iterate over all matching events between two positions.
   * @param {string} [filter]
   * @param {SubscribeOptions} [options]
   * @returns {Subscription}
   */
  read(filter = "TRUE", options = {}) {
    return this.subscribe(filter, { since: "earliest", until: "now", ...options });
  }

  /**
   * Attach to a durable subscription, whose acknowledged events the network remembers.
   * @param {string} name
   * @param {DurableOptions} [options]
   * @returns {DurableSubscription}
   */
  durable(name, options = {}) {
    return new DurableSubscription(this, name, options);
  }

  /** Return all durable subscriptions. @returns {Promise<any[]>} */
  async durables() {
    return (await this.request("GET", "/durable")).json();
  }

  /** Continue a durable subscription from another position. @param {string} name @param {string} to */
  async moveDurable(name, to) {
    await this.request("POST", `/durable/${encodeURIComponent(name)}/move`, { body: { to } });
  }

  /** Delete a durable subscription. @param {string} name */
  async deleteDurable(name) {
    await this.request("DELETE", `/durable/${encodeURIComponent(name)}`);
  }

  /**
   * Send a request, and repeat it while the network cannot be reached.
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, signal?: AbortSignal}} [more]
   * @returns {Promise<Response>}
   */
  async request(method, path, { body, signal } = {}) {
    const deadline = Date.now() + (this.#options.timeoutMs ?? 30_000);
    for (let attempt = 0; ; attempt++) {
      const timeout = AbortSignal.timeout(Math.max(1, deadline - Date.now()));
      try {
        return await this.open(method, path, {
          body,
          signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
        });
      } catch (error) {
        const wait = pauseMs(attempt);
        const isLast = signal?.aborted || Date.now() + wait > deadline;
        if (isLast || !(error instanceof GaplessError) || !error.isTransient) throw error;
        await sleep(wait, signal);
        this.turn();
      }
    }
  }

  /**
   * Send a request once. Throws a `GaplessError` if the response is not successful.
   * @param {string} method
   * @param {string} path
   * @param {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>, url?: string}} [more] `url`: at
   *   this broker
   * @returns {Promise<Response>}
   */
  async open(method, path, { body, signal, headers = {}, url = this.url } = {}) {
    const { token } = this.#options;
    const shown = typeof token === "function" ? await token() : token;
    /** @type {Record<string, string>} */
    const sent = { ...headers };
    if (shown) sent.Authorization = `Bearer ${shown}`;
    if (body !== undefined) sent["Content-Type"] = "application/json";
    const fetch = this.#options.fetch ?? globalThis.fetch;
    let response;
    try {
      response = await fetch(url + path, {
        method,
        headers: sent,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
        cache: "no-store",
      });
    } catch (error) {
      throw new GaplessError(`${url} cannot be reached: ${reasonOf(error)}`, {}, error);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}

/**
 * A stream of events. Iterate over it once, or again after a `SkippedError`.
 * @implements {AsyncIterable<Event>}
 */
export class Subscription {
  /** @type {Client} */ #client;
  /** @type {Record<string, string>} */ #query;
  /** @type {SubscribeOptions} */ #options;
  #abort = new AbortController();
  /** @type {AsyncGenerator<Message, void, void> | null} */ #messages = null;
  /** @type {Promise<Message | null> | null} */ #first = null;
  #url = "";
  #attempt = 0;
  #isReady = false;
  #hasEnded = false;
  #cursor = "";
  /** @type {(value: void) => void} */ #resolveReady = () => {};
  /** @type {(error: unknown) => void} */ #rejectReady = () => {};

  /**
   * @param {Client} client
   * @param {Record<string, string>} query
   * @param {SubscribeOptions} options
   */
  constructor(client, query, options) {
    this.#client = client;
    this.#query = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
    this.#options = options;
    this.#cursor = options.resume ?? "";
    options.signal?.addEventListener("abort", () => this.close(), { once: true });
    /** Resolves when the starting cut is fixed: every matching event published from then on is delivered. */
    this.ready = /** @type {Promise<void>} */ (
      new Promise((resolve, reject) => {
        this.#resolveReady = resolve;
        this.#rejectReady = reject;
      })
    );
    this.ready.catch(() => {});
    if (options.signal?.aborted) this.close();
    this.#first = this.#open(); // at once, so that `ready` needs no reader
    this.#first.catch((error) => this.#rejectReady(error));
  }

  /** The place where `subscribe(filter, {resume: cursor})` continues. Empty if the subscription cannot be resumed. */
  get cursor() {
    return this.#cursor;
  }

  /** The broker that serves the subscription now. */
  get url() {
    return this.#url;
  }

  /** Close the subscription; the iteration ends. */
  close() {
    this.#hasEnded = true;
    this.#abort.abort();
    this.#resolveReady();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<Event, undefined>>} */
  async next() {
    while (!this.#hasEnded) {
      const message = await this.#take();
      if (message === null) continue;
      if (message.id) this.#cursor = message.id;
      switch (message.name) {
        case "message":
          return { value: message.data, done: false };
        case "skipped":
          if (!this.#options.onSkipped) throw new SkippedError(message.data);
          this.#options.onSkipped(message.data);
          break;
        case "caught-up":
          this.#options.onState?.("caught-up");
          break;
        case "end":
          this.close();
          break;
        default: // "ready", and what later versions add
      }
    }
    return { value: undefined, done: true };
  }

  /** @returns {Promise<IteratorResult<Event, undefined>>} */
  async return() {
    this.close();
    return { value: undefined, done: true };
  }

  /** Return the next message; null if the subscription was closed meanwhile. @returns {Promise<Message | null>} */
  async #take() {
    const first = this.#first;
    this.#first = null;
    try {
      return await (first ?? this.#open());
    } catch (error) {
      this.#hasEnded = true;
      throw error;
    }
  }

  /** Return one message, and reconnect whenever the connection fails. @returns {Promise<Message | null>} */
  async #open() {
    while (!this.#hasEnded) {
      try {
        this.#messages ??= await this.#stream();
        const { value, done } = await this.#messages.next();
        if (!done) {
          if (value.name === "problem") throw new GaplessError(value.data.detail, value.data);
          if (value.name === "ready") {
            this.#isReady = true;
            this.#attempt = 0;
            this.#resolveReady();
            this.#options.onState?.("connected");
          }
          return value;
        }
        throw new GaplessError("the stream was interrupted");
      } catch (error) {
        await this.#recover(error);
      }
    }
    return null;
  }

  /** Wait before the next attempt, or give up. @param {unknown} error */
  async #recover(error) {
    const wasConnected = this.#messages !== null;
    this.#messages = null;
    if (this.#hasEnded) return;
    if (!(error instanceof GaplessError) || !error.isTransient) throw error;
    if (wasConnected) this.#options.onState?.("disconnected", error);
    if (this.#isReady && !this.#cursor && !("durable" in this.#query)) {
      throw new GaplessError(
        `${error.message}; this stream cannot be resumed, because its user may not read history: subscribe again`,
        {},
        error,
      );
    }
    if (this.#attempt > 0 || !wasConnected) this.#client.turn();
    await sleep(pauseMs(this.#attempt++), this.#abort.signal);
  }

  /** @returns {Promise<AsyncGenerator<Message, void, void>>} */
  async #stream() {
    /** @type {Record<string, string>} */
    const headers = { Accept: "text/event-stream" };
    if (this.#cursor) headers["Last-Event-ID"] = this.#cursor;
    const path = `/events?${new URLSearchParams(this.#query)}`;
    this.#url = this.#client.url;
    const response = await this.#client.open("GET", path, { headers, signal: this.#abort.signal });
    if (response.status === 204) {
      this.close(); // everything up to `until` was read before
      return none();
    }
    return messagesOf(response, this.#client.idleMs);
  }
}

/** A durable subscription. The application acknowledges the events it has processed. */
export class DurableSubscription extends Subscription {
  /** @type {Client} */ #client;
  /** @type {string} */ #name;

  /**
   * @param {Client} client
   * @param {string} name
   * @param {DurableOptions} options
   */
  constructor(client, name, { filter = "TRUE", ack = "manual", share = false, replace = false, ...more }) {
    const flags = { share: share ? "1" : "", replace: replace ? "1" : "" };
    super(client, { durable: name, filter, ack, ...flags }, more);
    this.#client = client;
    this.#name = name;
  }

  /**
   * Acknowledge events, which are then never redelivered. Without `share`, this includes all earlier events.
   * @param {...(Event | Event[])} events
   * @returns {Promise<number>} the number of deliveries that this call acknowledged
   */
  async ack(...events) {
    const ids = events.flat().map((event) => event.id);
    let done = 0;
    for (let first = 0; first < ids.length; first += ACKS_MAX) {
      done += await this.#send({ ids: ids.slice(first, first + ACKS_MAX) });
    }
    return done;
  }

  /**
   * Return events for redelivery; with `share`, to any member.
   * @param {Event | Event[]} events
   * @param {{delaySeconds?: number}} [options]
   * @returns {Promise<number>} the number of deliveries that were returned
   */
  async nack(events, { delaySeconds = 0 } = {}) {
    return await this.#send({ nack: [events].flat().map((event) => event.id), delay_s: delaySeconds });
  }

  /** Acknowledge everything up to a position. @param {string} position @returns {Promise<number>} */
  async ackUpTo(position) {
    return await this.#send({ position });
  }

  /** @param {unknown} body @returns {Promise<number>} */
  async #send(body) {
    const path = `/durable/${encodeURIComponent(this.#name)}/ack`;
    const response = await this.#client.open("POST", path, { body, url: this.url });
    return (await response.json()).acknowledged;
  }
}

/**
 * Yield the server-sent events of a response. A stream that is silent for too long fails.
 * @param {Response} response
 * @param {number} idleMs
 * @returns {AsyncGenerator<Message, void, void>}
 */
async function* messagesOf(response, idleMs) {
  if (!response.body) throw new GaplessError("the gateway answered without a body");
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    while (true) {
      const { value, done } = await withinMs(reader.read(), idleMs);
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const message = messageOf(block);
        if (message) yield message;
      }
    }
  } catch (error) {
    if (error instanceof GaplessError) throw error;
    throw new GaplessError(`the stream was interrupted: ${reasonOf(error)}`, {}, error);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @returns {AsyncGenerator<Message, void, void>} */
async function* none() {}

/** @param {string} block @returns {Message | null} */
function messageOf(block) {
  let name = "message";
  let id = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("data: ")) data += line.slice(6);
    else if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("id: ")) id = line.slice(4);
  }
  return data ? { name, id, data: JSON.parse(data) } : null;
}

/** @param {Response} response @returns {Promise<GaplessError>} */
async function problemOf(response) {
  try {
    const problem = await response.json();
    return new GaplessError(problem.detail ?? problem.title, { ...problem, status: response.status });
  } catch {
    return new GaplessError(`the answer was ${response.status} ${response.statusText}`, { status: response.status });
  }
}

/** @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

/** Return a pause that doubles with each attempt, half of it random, to spread reconnections. @param {number} attempt */
function pauseMs(attempt) {
  const most = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(attempt, 10));
  return most / 2 + (Math.random() * most) / 2;
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
function sleep(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** @template T @param {Promise<T>} promise @param {number} ms @returns {Promise<T>} */
async function withinMs(promise, ms) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new GaplessError(`the stream was silent for ${ms} ms`)), ms);
  });
  try {
    return /** @type {T} */ (await Promise.race([promise, late]));
  } finally {
    clearTimeout(timer);
  }
}
