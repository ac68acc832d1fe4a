/** Rules of a HorizontalPodAutoscaler with one external metric of the type AverageValue. Times are in seconds. */
export interface ScalingRules {
  minReplicas: number;
  maxReplicas: number;
  /** Value of the metric for which one replica is meant. */
  target: number;
  up: Direction;
  down: Direction;
}

interface Direction {
  /** Within this time, the recommendation that changes least counts. */
  window: number;
  policy: { type: 'Percent' | 'Pods'; value: number; period: number };
}

/** A ratio to the target that differs from 1 by at most this changes nothing. */
const TOLERANCE = 0.1;
/** Interval of decisions (`--horizontal-pod-autoscaler-sync-period`). */
export const SYNC_SECONDS = 15;

/**
 * Decides as a HorizontalPodAutoscaler with `behavior` does, by its documentation (https://kubernetes.io/docs,
 * "Horizontal Pod Autoscaling"). Each direction has one policy.
 */
export class Autoscaler {
  readonly #rules: ScalingRules;
  #recommended: { at: number; replicas: number }[] = [];
  #changes: { at: number; by: number }[] = [];

  constructor(rules: ScalingRules) {
    this.#rules = rules;
  }

  /** Returns the number of replicas from now on. Without a metric nothing changes. */
  decide(at: number, replicas: number, metric: number | undefined): number {
    if (metric === undefined) return replicas;
    const { up, down, target, minReplicas, maxReplicas } = this.#rules;
    const ratio = metric / (target * replicas);
    const wanted = Math.abs(1 - ratio) <= TOLERANCE ? replicas : Math.ceil(metric / target);
    const longest = Math.max(up.window, down.window);
    this.#recommended = [...this.#recommended, { at, replicas: wanted }].filter((one) => at - one.at <= longest);
    const lowest = Math.min(...this.#within(at, up.window));
    const highest = Math.max(...this.#within(at, down.window));
    const stable = lowest > replicas ? lowest : highest < replicas ? highest : replicas;
    const bounded = Math.min(maxReplicas, Math.max(minReplicas, stable));
    const next =
      bounded > replicas
        ? Math.min(bounded, this.#limit(at, replicas, up, 1))
        : Math.max(bounded, this.#limit(at, replicas, down, -1));
    if (next !== replicas) this.#changes.push({ at, by: next - replicas });
    return next;
  }

  #within(at: number, window: number): number[] {
    return this.#recommended.filter((one) => at - one.at <= window).map(({ replicas }) => replicas);
  }

  /** Returns the farthest number of replicas that the policy allows, from what they were a period ago. */
  #limit(at: number, replicas: number, { policy }: Direction, sign: 1 | -1): number {
    const changed = this.#changes.filter((one) => at - one.at < policy.period && Math.sign(one.by) === sign);
    const before = replicas - changed.reduce((sum, { by }) => sum + by, 0);
    if (policy.type === 'Pods') return before + sign * policy.value;
    const share = (before * policy.value) / 100;
    return sign > 0 ? Math.ceil(before + share) : Math.floor(before - share);
  }
}
