//! `/search`: a search engine over a dozen built-in articles. The articles are short summaries written for this
//! example; their addresses stand under `.example` and lead nowhere.

use crate::tool_server::{Memory, overlap};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most results of one search.
const RESULTS: usize = 4;

struct Article {
    title: &'static str,
    url: &'static str,
    snippet: &'static str,
}

const ARTICLES: [Article; 12] = [
    Article {
        title: "Error correction below the threshold",
        url: "https://quantum.example/2024/12/below-threshold",
        snippet: "Google's Willow chip showed a surface-code logical qubit whose error rate falls by about half with each \
                  step to a larger code: the first clear demonstration of quantum error correction below the threshold.",
    },
    Article {
        title: "A road map to a fault-tolerant quantum computer by 2029",
        url: "https://quantum.example/2025/06/road-map-2029",
        snippet: "IBM published a plan for Starling, a fault-tolerant quantum computer with some 200 logical qubits, built on \
                  qLDPC codes that need far fewer physical qubits than the surface code.",
    },
    Article {
        title: "A trap with 6,100 neutral atoms",
        url: "https://quantum.example/2025/09/six-thousand-atoms",
        snippet: "A group at Caltech held 6,100 caesium atoms in optical tweezers with coherence times of about 13 seconds, a \
                  recent development that makes neutral atoms one of the largest qubit arrays in quantum computing.",
    },
    Article {
        title: "Recent developments in quantum computing: a year of error correction",
        url: "https://quantum.example/2025/12/year-in-review",
        snippet: "Logical qubits that outlive their physical ones, larger neutral-atom arrays and published road maps moved \
                  quantum computing from counting qubits to counting logical operations.",
    },
    Article {
        title: "The first post-quantum cryptography standards",
        url: "https://quantum.example/2024/08/post-quantum-standards",
        snippet: "NIST published ML-KEM, ML-DSA and SLH-DSA as FIPS 203, 204 and 205, so that encryption can be replaced \
                  before a quantum computer can break today's public keys.",
    },
    Article {
        title: "Trapped ions reach new gate fidelities",
        url: "https://quantum.example/2025/11/trapped-ion-fidelity",
        snippet: "Quantinuum's Helios, a trapped-ion quantum computer with 98 qubits, reports two-qubit gate fidelities above \
                  99.9 percent across all pairs, and logical qubits at a ratio of about two physical ones each.",
    },
    Article {
        title: "Topological qubits: a chip and a debate",
        url: "https://quantum.example/2025/02/topological-debate",
        snippet: "Microsoft presented Majorana 1, a chip meant to hold topological qubits; physicists went on to debate whether \
                  the published measurements show the states that it needs.",
    },
    Article {
        title: "A Nobel Prize for quantum circuits",
        url: "https://quantum.example/2025/10/nobel-prize",
        snippet: "The 2025 Nobel Prize in Physics went to John Clarke, Michel Devoret and John Martinis for macroscopic quantum \
                  tunnelling in an electric circuit, the ground on which superconducting qubits stand.",
    },
    Article {
        title: "Quantum annealing and a simulation that classical computers found hard",
        url: "https://quantum.example/2025/03/annealing-simulation",
        snippet: "D-Wave reported a simulation of magnetic materials beyond classical reach; other groups answered with \
                  improved classical methods for parts of the problem.",
    },
    Article {
        title: "Breaking RSA with fewer than a million qubits",
        url: "https://quantum.example/2025/05/rsa-estimate",
        snippet: "A new estimate puts the cost of factoring a 2048-bit RSA key at under a million noisy qubits running for less \
                  than a week, about twenty times fewer qubits than an estimate of 2019.",
    },
    Article {
        title: "How shorebirds find their way",
        url: "https://birds.example/ruddy-turnstone",
        snippet: "The ruddy turnstone flips pebbles to find food and migrates thousands of kilometres between the Arctic coast \
                  and beaches all over the world.",
    },
    Article {
        title: "Why write-ahead logs are fast",
        url: "https://storage.example/write-ahead-log",
        snippet: "A database that appends to a log and waits for one disk flush per group of commits gains throughput with load, \
                  without giving up durability.",
    },
];

/// `POST /search` with `{"query": "…"}`.
pub(crate) async fn search(
    State(memory): State<Arc<Memory>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> (StatusCode, Json<Value>) {
    memory.calls.note("/search", &headers, &body);
    let Some(query) = body["query"].as_str() else {
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"error": "`query` must be a string"})));
    };
    let found = overlap::best(query, &ARTICLES, |article| (article.title, article.snippet), RESULTS);
    let results: Value = found
        .into_iter()
        .map(|(score, article)| json!({"title": article.title, "url": article.url, "snippet": article.snippet, "score": score}))
        .collect();
    (StatusCode::OK, Json(json!({"query": query, "results": results})))
}
