/** Who asks: a person or a program that uses a fleet through a server. */
export interface Caller {
  /** Identifies the caller among all callers of the fleet. */
  id: string;
  /** Name for people. Several callers may have the same name. */
  name: string;
}
