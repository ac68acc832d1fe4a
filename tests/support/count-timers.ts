import { createHook } from 'node:async_hooks';

/** Counts the timers of this process that are set from now on and still run, those without a reference included. */
export function countTimers(): { running(): number } & Disposable {
  const running = new Set<number>();
  const hook = createHook({
    init: (id, type) => void (type === 'Timeout' && running.add(id)),
    destroy: (id) => void running.delete(id),
  }).enable();
  return { running: () => running.size, [Symbol.dispose]: () => void hook.disable() };
}
