/** A problem that the gateway reported (RFC 9457), or a connection that failed permanently. */
export class GaplessError extends Error {
    /**
     * @param {string} message
     * @param {{status?: number, type?: string, position?: number, [member: string]: unknown}} [problem]
     * @param {unknown} [cause]
     */
    constructor(message: string, problem?: {
        status?: number;
        type?: string;
        position?: number;
        [member: string]: unknown;
    }, cause?: unknown);
    /** The problem document; empty if the gateway was not reached. */
    problem: {
        [member: string]: unknown;
        status?: number;
        type?: string;
        position?: number;
    };
    /** @type {number} The HTTP status, or 0. */
    status: number;
    /** @type {string} The kind of problem, such as "invalid-filter". */
    kind: string;
    /** Whether a later attempt may succeed. */
    get isTransient(): boolean;
}
/** Reports requested history that no broker has any more. The iteration can be continued. */
export class SkippedError extends GaplessError {
    /** @param {Skipped} skipped */
    constructor(skipped: Skipped);
    /** The missing numbers by publisher. */
    lost: Record<string, unknown>;
    /** The positions between which events are missing, if they are known. */
    gap: [string, string] | null;
}
/** A client of one network. It opens connections only for calls and subscriptions. */
export class Client {
    /**
     * @param {string | string[]} urls the HTTP addresses of brokers, such as "http://127.0.0.1:8400"; with several, the client
     *   uses another one when the current one is unreachable
     * @param {ClientOptions} [options]
     */
    constructor(urls: string | string[], options?: ClientOptions);
    /** The broker that the client uses now. */
    get url(): string;
    /** @returns {number} */
    get idleMs(): number;
    /** Use the next broker from now on. */
    turn(): void;
    /**
     * Publish one event; resolves when f + 1 brokers have it. Retries use the same id, so the event is not published
     * twice.
     * @param {Draft} event
     * @returns {Promise<Published>}
     */
    publish(event: Draft): Promise<Published>;
    /**
     * Publish up to 1,000 events in order; resolves when all of them are confirmed.
     * @param {Draft[]} events
     * @returns {Promise<{events: Published[], position?: string}>}
     */
    publishMany(events: Draft[]): Promise<{
        events: Published[];
        position?: string;
    }>;
    /**
     * Subscribe. The result is an async iterable of events. `subscription.ready` resolves when the starting cut is fixed.
     * @param {string} [filter]
     * @param {SubscribeOptions} [options]
     * @returns {Subscription}
     */
    subscribe(filter?: string, options?: SubscribeOptions): Subscription;
    /**
     * Read history: iterate over all matching events between two positions.
     * @param {string} [filter]
     * @param {SubscribeOptions} [options]
     * @returns {Subscription}
     */
    read(filter?: string, options?: SubscribeOptions): Subscription;
    /**
     * Attach to a durable subscription, whose acknowledged events the network remembers.
     * @param {string} name
     * @param {DurableOptions} [options]
     * @returns {DurableSubscription}
     */
    durable(name: string, options?: DurableOptions): DurableSubscription;
    /** Return all durable subscriptions. @returns {Promise<any[]>} */
    durables(): Promise<any[]>;
    /** Continue a durable subscription from another position. @param {string} name @param {string} to */
    moveDurable(name: string, to: string): Promise<void>;
    /** Delete a durable subscription. @param {string} name */
    deleteDurable(name: string): Promise<void>;
    /**
     * Send a request, and repeat it while the network cannot be reached.
     * @param {string} method
     * @param {string} path
     * @param {{body?: unknown, signal?: AbortSignal}} [more]
     * @returns {Promise<Response>}
     */
    request(method: string, path: string, { body, signal }?: {
        body?: unknown;
        signal?: AbortSignal;
    }): Promise<Response>;
    /**
     * Send a request once. Throws a `GaplessError` if the response is not successful.
     * @param {string} method
     * @param {string} path
     * @param {{body?: unknown, signal?: AbortSignal, headers?: Record<string, string>, url?: string}} [more] `url`: at
     *   this broker
     * @returns {Promise<Response>}
     */
    open(method: string, path: string, { body, signal, headers, url }?: {
        body?: unknown;
        signal?: AbortSignal;
        headers?: Record<string, string>;
        url?: string;
    }): Promise<Response>;
    #private;
}
/**
 * A stream of events. Iterate over it once, or again after a `SkippedError`.
 * @implements {AsyncIterable<Event>}
 */
export class Subscription implements AsyncIterable<Event> {
    /**
     * @param {Client} client
     * @param {Record<string, string>} query
     * @param {SubscribeOptions} options
     */
    constructor(client: Client, query: Record<string, string>, options: SubscribeOptions);
    /** Resolves when the starting cut is fixed: every matching event published from then on is delivered. */
    ready: Promise<void>;
    /** The place where `subscribe(filter, {resume: cursor})` continues. Empty if the subscription cannot be resumed. */
    get cursor(): string;
    /** The broker that serves the subscription now. */
    get url(): string;
    /** Close the subscription; the iteration ends. */
    close(): void;
    /** @returns {Promise<IteratorResult<Event, undefined>>} */
    next(): Promise<IteratorResult<Event, undefined>>;
    /** @returns {Promise<IteratorResult<Event, undefined>>} */
    return(): Promise<IteratorResult<Event, undefined>>;
    [Symbol.asyncIterator](): this;
    #private;
}
/** A durable subscription. The application acknowledges the events it has processed. */
export class DurableSubscription extends Subscription {
    /**
     * @param {Client} client
     * @param {string} name
     * @param {DurableOptions} options
     */
    constructor(client: Client, name: string, { filter, ack, share, replace, ...more }: DurableOptions);
    /**
     * Acknowledge events, which are then never redelivered. Without `share`, this includes all earlier events.
     * @param {...(Event | Event[])} events
     * @returns {Promise<number>} the number of deliveries that this call acknowledged
     */
    ack(...events: (Event | Event[])[]): Promise<number>;
    /**
     * Return events for redelivery; with `share`, to any member.
     * @param {Event | Event[]} events
     * @param {{delaySeconds?: number}} [options]
     * @returns {Promise<number>} the number of deliveries that were returned
     */
    nack(events: Event | Event[], { delaySeconds }?: {
        delaySeconds?: number;
    }): Promise<number>;
    /** Acknowledge everything up to a position. @param {string} position @returns {Promise<number>} */
    ackUpTo(position: string): Promise<number>;
    #private;
}
export type AttributeValue = string | number | boolean;
/**
 * An event to publish. The payload is one of `data`, `text` and `data_base64`.
 */
export type Draft = {
    attributes?: Record<string, AttributeValue> | undefined;
    /**
     * identifies the event, so that a retry does not publish it again; random by default
     */
    id?: string | undefined;
    /**
     * any JSON value
     */
    data?: unknown;
    text?: string | undefined;
    data_base64?: string | undefined;
    /**
     * positions of the direct causes of this event
     */
    causes?: string[] | undefined;
};
/**
 * A delivered event.
 */
export type Event = {
    /**
     * `publisher:number`
     */
    id: string;
    publisher: string;
    number: number;
    position?: string | undefined;
    time?: string | undefined;
    attributes: Record<string, AttributeValue>;
    data?: unknown;
    text?: string | undefined;
    data_base64?: string | undefined;
    redelivered?: boolean | undefined;
};
export type Published = {
    id: string;
    duplicate: boolean;
    position?: string;
};
export type ClientOptions = {
    /**
     * authenticates the user; a function is called for each request
     */
    token?: string | (() => string | Promise<string>) | undefined;
    /**
     * how long a call is retried; 30 s by default
     */
    timeoutMs?: number | undefined;
    /**
     * how long a stream can be silent before it is reconnected; 45 s by default (the gateway sends
     * data every 15 s)
     */
    idleMs?: number | undefined;
    /**
     * a replacement for the global `fetch`
     */
    fetch?: typeof fetch | undefined;
};
export type SubscribeOptions = {
    /**
     * a position, "earliest", a time, or an age such as "10m"
     */
    since?: string | undefined;
    /**
     * the position at which the stream ends; "now" is the newest one
     */
    until?: string | undefined;
    /**
     * the `cursor` of an earlier subscription, from which to continue
     */
    resume?: string | undefined;
    signal?: AbortSignal | undefined;
    /**
     * called with history that no broker has any more; without it, the
     * iteration throws a `SkippedError`, and can be continued
     */
    onSkipped?: ((gap: Skipped) => void) | undefined;
    onState?: ((state: "connected" | "disconnected" | "caught-up", reason?: Error) => void) | undefined;
};
export type DurableOptions = {
    filter?: string | undefined;
    /**
     * with "auto", the gateway acknowledges the events it has sent
     */
    ack?: "manual" | "auto" | undefined;
    /**
     * share the events with the other members of the same subscription
     */
    share?: boolean | undefined;
    /**
     * replace the filter if the subscription has another one
     */
    replace?: boolean | undefined;
    signal?: AbortSignal | undefined;
    onState?: ((state: "connected" | "disconnected" | "caught-up", reason?: Error) => void) | undefined;
};
export type Skipped = {
    detail: string;
    lost: Record<string, unknown>;
    gap: [string, string] | null;
};
/**
 * a server-sent event
 */
export type Message = {
    name: string;
    id: string;
    data: any;
};
