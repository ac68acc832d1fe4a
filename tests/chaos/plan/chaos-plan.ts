import { parseArgs } from 'node:util';

/** Duration and choice of the rounds of one run. */
export interface ChaosPlan {
  /** Time in which new rounds are started. */
  minutes: number;
  seed: number;
  /** The only round of the seed that runs, if one is given. */
  round: number | undefined;
  /** Time in which each round injects faults. */
  seconds: number;
  /** Whether the engine may be restarted, if this run has started it. */
  restartEngine: boolean;
}

export function readChaosPlan(args: string[]): ChaosPlan {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '30' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      round: { type: 'string' },
      seconds: { type: 'string', default: '60' },
      'restart-engine': { type: 'boolean', default: false },
    },
  });
  const number = (name: keyof typeof values): number => {
    const value = Number(values[name]);
    if (Number.isNaN(value) || value < 0) throw new Error(`--${name} must be a number from 0 on`);
    return value;
  };
  return {
    minutes: number('minutes'),
    seed: number('seed'),
    round: values.round === undefined ? undefined : number('round'),
    seconds: number('seconds'),
    restartEngine: values['restart-engine'],
  };
}
