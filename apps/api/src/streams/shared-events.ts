import type { ServerEvent } from './send-events.ts';

/** Large events that many streams send at about the same time. Each is kept as long as a stream has it. */
export class SharedEvents<Owner extends object> {
  readonly #events = new WeakMap<Owner, Map<string, WeakRef<ServerEvent>>>();
  readonly #dropped = new FinalizationRegistry(
    ({ of, name }: { of: Map<string, WeakRef<ServerEvent>>; name: string }) => {
      if (of.get(name)?.deref() === undefined) of.delete(name);
    },
  );

  /** Returns the event of this name if a stream of the owner has it, or else a new one. */
  share(owner: Owner, name: string, make: () => ServerEvent): ServerEvent {
    const of = this.#events.get(owner) ?? new Map<string, WeakRef<ServerEvent>>();
    this.#events.set(owner, of);
    const known = of.get(name)?.deref();
    if (known !== undefined) return known;
    const event = make();
    of.set(name, new WeakRef(event));
    this.#dropped.register(event, { of, name });
    return event;
  }
}
