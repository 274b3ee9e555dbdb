"use strict";
const REFRESH_MS = 2000;
const SHOWN = 50;
const byId = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

async function ask(path, method = "GET", body = undefined) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status === 401) {
    byId("sign-in").hidden = false;
    throw new Error("A token is needed.");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail);
  return found;
}

function span(since, now) {
  const seconds = Math.max(0, (now - since) / 1000);
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

async function change(path, method, body) {
  try {
    await ask(path, method, body);
  } catch (error) {
    window.alert(error.message);
  }
  draw();
}

function button(text, className, press) {
  const made = element("button", text, className);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

function showRows(id, list, cellsOf) {
  const heads = [...byId(id).closest("table").querySelectorAll("th")].map((head) => head.textContent);
  byId(id).replaceChildren(...list.map((one) => {
    const row = element("tr");
    cellsOf(one).forEach((cell, at) => {
      const [text, name] = Array.isArray(cell) ? cell : [cell, typeof cell === "number" ? "number" : ""];
      const words = typeof text === "number" ? text.toLocaleString("en") : text;
      const made = element("td", text instanceof Node ? undefined : words, name);
      if (text instanceof Node) made.append(text);
      else if (name !== "why") made.dataset.head = heads[at];
      row.append(made);
    });
    return row;
  }));
}

function onTypes(part, running) {
  const words = (type) => {
    const gpus = part.gpu_types?.[type] ?? part.gpus;
    return `${gpus} ${type || (gpus === 1 ? "GPU" : "GPUs")}`;
  };
  const types = running ? [running] : Object.keys(part.gpu_types ?? {});
  if (!part.gpus && !part.gpu_types) return `${part.tasks} without GPUs`;
  return `${part.tasks} × ${types.map(words).join(" or ") || words("")}`;
}

function places(job, typeOf, before = "") {
  const elastic = job.min_tasks < job.max_tasks;
  const on = (servers) => Object.keys(servers).join(", ");
  if (!elastic && !job.parts.length) return before || on(job.servers);
  const made = element("div", before);
  const line = (words, servers) => made.append(element("div", [words, on(servers)].filter(Boolean).join(" on ")));
  for (const part of job.parts) {
    line(`${part.part}: ${onTypes(part, typeOf.get(Object.keys(part.servers)[0]))}`, part.servers);
  }
  if (elastic) line(`${job.tasks} tasks (may have ${job.min_tasks} to ${job.max_tasks})`, job.servers);
  return made;
}

function drain(of, name, closes) {
  const asked = { of, name, state: closes ? "closed" : "open", why: "page" };
  if (closes) {
    const minutes = window.prompt(`Close ${of} ${name}? It takes no job more. Minutes after which what still runs there is stopped; empty to let it end:`, "");
    if (minutes === null) return;
    if (minutes.trim()) asked.stop_after_s = 60 * Number(minutes);
    if (asked.stop_after_s !== undefined && !(asked.stop_after_s >= 0)) {
      window.alert(`${minutes} is no number of minutes.`);
      return;
    }
  } else if (!window.confirm(`Open ${of} ${name}?`)) return;
  change("/v1/drains", "POST", asked);
}

function serverCell(server) {
  const closes = server.state !== "closed";
  const cell = button(undefined, `cell ${server.state}`, () => drain("server", server.server, closes));
  if (server.state !== "down" && server.used) {
    cell.style.background = `rgba(var(--used), ${0.25 + (0.75 * server.used) / Math.max(1, server.gpus)})`;
  }
  cell.title = `${server.server}: ${server.used} of ${server.gpus} ${server.gpu_type}, ${server.state}`;
  cell.setAttribute("aria-label", cell.title);
  return cell;
}

function group(servers, keyOf) {
  const found = new Map();
  for (const server of servers) {
    const key = keyOf(server);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(server);
  }
  return [...found];
}

function drainButton(of, name, words, list) {
  const closes = list.every((server) => server.state !== "closed");
  return button(words, "name", () => drain(of, name, closes));
}

let shownFleet = "";

function showFleet(servers) {
  const inService = servers.filter((server) => server.state !== "down");
  const sum = (list, name) => list.reduce((total, server) => total + server[name], 0);
  byId("gpus").textContent = `${sum(inService, "used")} of ${sum(inService, "gpus")}`;
  const now = JSON.stringify(servers);
  if (now === shownFleet) return;
  shownFleet = now;
  const clusterOf = (server) => server.region === server.cluster ? server.region : `${server.region}: ${server.cluster}`;
  byId("fleet").replaceChildren(...group(servers, clusterOf).map(([words, list]) => {
    const there = list.filter((server) => server.state !== "down");
    const box = element("div", undefined, "region");
    const cells = element("div", undefined, "cells");
    const racks = group(list, (server) => server.rack);
    for (const [rack, some] of racks) {
      if (racks.length > 1) cells.append(drainButton("rack", rack, rack, some));
      cells.append(...some.map(serverCell));
    }
    const head = element("div");
    head.append(drainButton("cluster", list[0].cluster, words, list), `: ${sum(there, "used")} of ${sum(there, "gpus")} GPUs`);
    box.append(head, cells);
    return box;
  }));
}

function showUse(use) {
  const [width, height] = [1000, 120];
  const most = Math.max(1, ...use.map(([, , supply]) => supply));
  const first = use.length ? use[0][0] : 0;
  const span = Math.max(1, use.length ? use[use.length - 1][0] - first : 1);
  const line = (at, className) => {
    const made = document.createElementNS(byId("use").namespaceURI, "polyline");
    made.setAttribute("class", className);
    made.setAttribute("points", use.map((one) =>
      `${(width * (one[0] - first)) / span},${height - (height * 0.96 * one[at]) / most}`).join(" "));
    return made;
  };
  byId("use").toggleAttribute("hidden", use.length < 2);
  byId("use").replaceChildren(line(2, "supply"), line(1, "used"));
  byId("use-words").textContent = use.length < 2 ? "Noted every five minutes since this process leads."
    : `${Math.round(span / 60000)} minutes; at most ${most} GPUs in service (dashed).`;
}

function serverCount(shares) {
  const count = new Set(shares.map((share) => share.server)).size;
  return count === 1 ? "a server" : `${count} servers`;
}

const WORDS = {
  Submitted: (e) => `${e.job} is submitted, tier ${e.spec.tier ?? 0}`,
  Placed: (e) => `${e.job} gets ${serverCount(e.shares)} in ${e.region}`
    + (e.victims ? `; ${e.victims.join(", ")} stop for it` : ""),
  Resized: (e) => `${e.job} has ${e.tasks} ${e.tasks === 1 ? "task" : "tasks"} from now on`,
  Refused: (e) => `${e.job} waits: ${e.reason}`,
  StopAsked: (e) => `${e.job} is asked to stop: ${e.why}`,
  ServerClosed: (e) => `${e.server} takes no job. ${e.why ?? ""}`,
  ServerOpened: (e) => `${e.server} takes jobs again`,
  ServerDown: (e) => `${e.server} is out of service. ${e.why ?? ""}`,
  PlanAdopted: (e) => `plan ${e.plan} of ${e.path} is carried out from now on: ${(e.steps ?? []).length} steps`,
  SolveEnded: (e) => `${e.path}: ${e.status}${e.plan ? `, plan ${e.plan}` : ""}`,
  CopyAsked: (e) => `${e.dataset} is to be copied from ${e.source} to ${e.region}`,
  ReplicaDropped: (e) => `${e.dataset} is to be deleted in ${e.region}`,
  LeadTaken: (e) => `${e.holder} leads, epoch ${e.epoch}${e.unenforced ? `; limits are not enforced: ${e.unenforced}` : ""}`,
};

function inWords(event) {
  const words = WORDS[event.event];
  if (words) return words(event);
  return [event.job ?? event.server ?? event.dataset ?? event.tenant, event.region].filter(Boolean).join(", ");
}

function carriedOut(plan) {
  if (!plan || !plan.progress) return plan ? "no" : "";
  const { steps, waiting, under_way: underWay, dropped } = plan.progress;
  return `${Math.max(0, steps - waiting - underWay - dropped)} of ${steps} steps; ${underWay} under way, ${dropped} dropped`;
}

function showSolves(solves, plans) {
  const planOf = new Map(plans.map((plan) => [plan.plan, plan]));
  showRows("solves", solves.slice(0, SHOWN), (solve) => [
    solve.solve, solve.path, solve.error ? `${solve.status}: ${solve.error}` : solve.status,
    [solve.objective === null ? "" : solve.objective.toPrecision(5), "number"],
    [solve.gap === null ? "" : `${(100 * solve.gap).toFixed(2)} %`, "number"],
    carriedOut(planOf.get(solve.plan)),
  ]);
}

const starts = (job, now) => [
  [`promised${job.limits_enforced === false ? " (limits are not enforced)" : ""} within`, job.promised_by_ms], ["usually within", job.usually_by_ms], ["expected in", job.expected_ms],
].filter(([, at]) => at !== null).map(([words, at]) => `${words} ${span(now, at)}`).join("; ");

const cancel = (job) => button("cancel", "", () => {
  if (window.confirm(`Cancel job ${job.job}?`)) change(`/v1/jobs/${job.job}`, "DELETE");
});

const listed = (state) => `/v1/jobs?limit=${SHOWN}&state=${state}&order=${state === "waiting" ? "place" : "submission"}&search=${encodeURIComponent(byId("text").value)}`
  + (byId("tenant").value ? `&tenant=${encodeURIComponent(byId("tenant").value)}` : "");

let asked = 0;

async function draw() {
  const mine = asked += 1;
  try {
    const [overview, fleet, waiting, holding, log, solves, plans, rights] = await Promise.all([
      ask("/v1/overview"), ask("/v1/fleet"), ask(listed("waiting")), ask(listed("holding")), ask("/v1/events?limit=40"),
      ask("/v1/solves"), ask("/v1/plans"), ask("/v1/quotas"),
    ]);
    if (mine !== asked) return;
    const now = Date.now();
    showFleet(fleet.servers);
    showUse(overview.use);
    byId("open").hidden = !overview.open;
    byId("waiting-count").textContent = overview.waiting.toLocaleString("en");
    byId("holding-count").textContent = overview.holding.toLocaleString("en");
    byId("last").textContent = log.last.toLocaleString("en");
    const most = (gpus) => [gpus === null ? "no limit" : gpus, "number"];
    showRows("tenants", overview.tenants, (one) => [
      one.tenant || "(none)", one.gpus, most(one.quota), one.holding, one.waiting,
    ]);
    showRows("longest", overview.longest, (one) => [
      [one.gpus_up_to, "number"], one.job, span(one.since_ms, now), [one.why, "why"],
    ]);
    showRows("quotas", rights.quotas, (one) => [
      one.tenant, one.gpu_type || "all", one.parent, one.gpus, one.used, most(one.left), most(one.borrowing_limit),
      most(one.lending_limit),
    ]);
    for (const [id, found] of [["waiting", waiting], ["holding", holding]]) {
      const shown = found.jobs.length < found.matching ? `${found.jobs.length} of ` : "";
      byId(`${id}-shown`).textContent = `${shown}${found.matching.toLocaleString("en")}`;
    }
    const typeOf = new Map(fleet.servers.map((server) => [server.server, server.gpu_type]));
    showRows("waiting", waiting.jobs, (job) => [
      job.place, job.job, job.tenant, job.tier, job.gpus, span(job.since_ms, now), cancel(job),
      [places(job, typeOf, [starts(job, now), job.why].filter(Boolean).join("; ")), "why"],
    ]);
    showRows("holding", holding.jobs, (job) => [
      job.job, job.tenant, job.state, job.gpus, job.region, places(job, typeOf),
      span(job.since_ms, now), cancel(job),
    ]);
    showSolves(solves.solves, plans.plans);
    showRows("events", log.events.reverse(), (event) => [
      `${span(event.at_ms, now)} ago`, event.event, inWords(event), event.by ?? "",
    ]);
    byId("problem").textContent = "";
    byId("sign-in").hidden = true;
  } catch (error) {
    byId("problem").textContent = error.message;
  }
}

byId("search").addEventListener("submit", (event) => event.preventDefault());
byId("search").addEventListener("input", () => draw());
byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  sessionStorage.setItem("token", token);
  draw();
});
async function refresh() {
  await draw();
  setTimeout(refresh, REFRESH_MS);
}
refresh();
