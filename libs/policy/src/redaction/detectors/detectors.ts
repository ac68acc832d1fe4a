import type { Rule, Source } from '../source.ts';
import { creditCards } from './credit-card.ts';
import { emails } from './email.ts';
import { ipAddresses } from './ip-address.ts';
import { macAddresses } from './mac-address.ts';
import { urls } from './url.ts';

/** Built-in types of personal data. Rules of these types need no pattern. */
export const DETECTORS: ReadonlyMap<string, (rule: Rule) => Source> = new Map([
  ['email', emails],
  ['credit_card', creditCards],
  ['ip', ipAddresses],
  ['mac_address', macAddresses],
  ['url', urls],
]);
