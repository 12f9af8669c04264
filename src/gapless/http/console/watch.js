/** The recent state of the network, second by second: samples for plots, rates, and changes. */

const RECENT_MAX = 120;
const OLDER_MAX = 360;
const OLDER_S = 5;
const CHANGES_MAX = 200;
const COUNTERS = ["published", "delivered", "messages_in", "messages_out", "bytes_in", "bytes_out"];

export const watch = {
  /** The last answer. */
  now: null,
  problem: null,
  /** The numbers of each broker over time, `{time, brokers: {name: {…}}}`: one in five seconds, then one per second. */
  older: [],
  recent: [],
  get samples() { return [...this.older, ...this.recent]; },
  /** Recent changes, newest first: `{time, kind, text}`. */
  changes: [],
  /** Bytes per second of each link, by "a b", from a to b. */
  traffic: {},
  /** Rates per second, by broker. */
  rates: {},

  /** The samples that brokers stored before the page was opened: the answer of `/api/samples`. */
  remember(answer) {
    const slots = new Map();
    for (const [name, { every_s: every, bounds, rows }] of Object.entries(answer)) {
      rows.forEach((row, i) => {
        const now = figures(row, bounds);
        const old = i ? figures(rows[i - 1], bounds) : null;
        const seconds = old ? now.time - old.time : 0;
        for (const key of ["published", "delivered", "bytes_out"]) now[key] = seconds > 0 && now[key] !== undefined && old[key] !== undefined ? Math.max(0, now[key] - old[key]) / seconds : undefined;
        const slot = Math.floor(now.time / every);
        if (!slots.has(slot)) slots.set(slot, { time: slot * every, brokers: {} });
        slots.get(slot).brokers[name] = now;
      });
    }
    const begin = this.recent[0]?.time ?? Infinity;
    this.older = [...slots.values()].filter(({ time }) => time < begin).sort((a, b) => a.time - b.time).slice(-OLDER_MAX);
  },

  see(now) {
    const before = this.now;
    this.problem = null;
    this.now = now;
    if (before?.time === now.time) return; // the first answer of another stream
    if (before) {
      this.changes.unshift(...differences(before, now).reverse().map(([kind, text]) => ({ time: now.time, kind, text })));
      this.changes.length = Math.min(this.changes.length, CHANGES_MAX);
    }
    const seconds = before ? Math.max(now.time - before.time, 0.05) : 0;
    const brokers = {};
    for (const [name, broker] of Object.entries(now.brokers)) {
      if (broker.state === "down") continue;
      const old = before?.brokers[name];
      const isSame = seconds && old && old.state !== "down" && old.uptime_s <= broker.uptime_s + 1;
      const rates = (this.rates[name] = {});
      for (const key of COUNTERS) if (key in broker) rates[key] = isSame ? Math.max(0, broker[key] - old[key]) / seconds : undefined;
      for (const [peer, link] of Object.entries(broker.links)) {
        const earlier = isSame ? old.links[peer] : undefined;
        const sent = earlier ? link.bytes_out - earlier.bytes_out : 0;
        this.traffic[`${name} ${peer}`] = sent > 0 ? sent / seconds : 0;
      }
      brokers[name] = {
        ...rates, confirmation: broker.confirmation_latency, delivery: broker.delivery_latency, history: broker.history?.bytes,
        lag: "lag" in broker ? Math.max(0, ...Object.values(broker.lag)) : undefined,
        late: broker.turns?.late_ms / 1000, clients: broker.clients,
      };
    }
    if (!before) return; // there are no rates yet
    this.recent.push({ time: now.time, brokers });
    if (this.recent.length <= RECENT_MAX) return;
    const oldest = this.recent.shift();
    if (oldest.time - (this.older.at(-1)?.time ?? 0) >= OLDER_S) this.older.push(oldest);
    if (this.older.length > OLDER_MAX) this.older.shift();
  },

  miss(error) {
    if (!this.problem) this.changes.unshift({ time: Date.now() / 1000, kind: "bad", text: `This broker does not answer: ${error.message}` });
    this.problem = error;
  },

  /** Return the sum of a rate over all brokers; undefined if no broker reports it. */
  total(key) {
    const found = Object.entries(this.rates).filter(([name, rates]) => this.now.brokers[name]?.state !== "down" && rates[key] !== undefined);
    return found.length ? found.reduce((sum, [, rates]) => sum + rates[key], 0) : undefined;
  },
};

/** Convert one row of `/api/samples` to an object. */
function figures([time, published, delivered, bytes_out, lag, history, late, confirmation, delivery], bounds) {
  const counts = (row, names) => row && names && { count: row.at(-1), buckets: Object.fromEntries(names.map((bound, i) => [bound, row[i]])) };
  return {
    time, published: published ?? undefined, delivered: delivered ?? undefined, bytes_out, lag: lag ?? undefined, history: history ?? undefined,
    late: late / 1000, confirmation: counts(confirmation, bounds.confirmation), delivery: counts(delivery, bounds.delivery),
  };
}

function differences(before, now) {
  const found = [];
  for (const [name, broker] of Object.entries(now.brokers)) {
    const old = before.brokers[name];
    if (!old) continue;
    if (broker.state !== old.state) found.push([broker.state === "up" ? "ok" : broker.state === "down" ? "bad" : "warn", changed(name, old, broker)]);
    else if (broker.incarnation !== old.incarnation) found.push(["ok", `${name} rejoined, incarnation ${broker.incarnation}`]);
  }
  for (const [name, [by, successor]] of entries(exclusions(now), exclusions(before))) found.push(["warn", successor ? `${by} excluded ${name}; ${successor} takes over` : `${by} excluded ${name}`]);
  for (const [name] of entries(exclusions(before), exclusions(now))) found.push(["ok", `${name} is no longer excluded`]);
  for (const [key] of entries(handovers(now), handovers(before))) found.push(["warn", `Handover around ${key} began`]);
  for (const [key] of entries(handovers(before), handovers(now))) found.push(["ok", `Handover around ${key} finished`]);
  return found;
}

function changed(name, old, broker) {
  if (broker.state === "down") return `${name} is down`;
  if (broker.state === "up" && old.state === "down") return `${name} is up again, incarnation ${broker.incarnation}`;
  return broker.state === "up" ? `${name} is up` : `${name} is ${broker.state}: ${broker.waits.map((wait) => wait.text).join("; ") || "not ready"}`;
}

/** Return the entries of one map whose keys another does not have. */
const entries = (one, other) => [...one].filter(([key]) => !other.has(key));

/** Return, for each excluded broker, a broker that reports the exclusion, and the successor. */
export function exclusions(now) {
  const found = new Map();
  for (const broker of Object.values(now.brokers)) {
    for (const [name, successor] of Object.entries(broker.replaced_by ?? {})) {
      if (!found.has(name) || (successor && !found.get(name)[1])) found.set(name, [broker.name, successor]);
    }
  }
  return found;
}

/** Return the participating brokers of each handover, by the names of the brokers in its region. */
export function handovers(now) {
  const found = new Map();
  for (const broker of Object.values(now.brokers)) {
    for (const handover of broker.handovers ?? []) {
      const key = handover.around.join(", ");
      found.set(key, [...(found.get(key) ?? []), broker.name]);
    }
  }
  return found;
}
