/**
 * Returns the name under which hosts drive a detached batch. A batch that is submitted again under the name of one that
 * was removed finds nothing of it.
 */
export function driverNameOf({ name, id }: { name: string; id: string }): string {
  return `${name.slice(0, 55)}.${id.slice(-8).toLowerCase()}`;
}
