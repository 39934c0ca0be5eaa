fn main() {
    for file in std::env::args().skip(1) {
        let source = std::fs::read_to_string(&file).unwrap();
        let t = std::time::Instant::now();
        let r = turnstone_specs::read(&source, None);
        let el = t.elapsed();
        match r {
            Ok((a, w)) => { println!("OK  {file} {} caps={:?} limits={:?} {:?}", a.name, a.capabilities.iter().map(|c| &c.name).collect::<Vec<_>>(), a.limits, el); for p in w { println!("     {p}"); } }
            Err(ps) => { println!("ERR {file} {:?}", el); for p in ps { println!("     {p}"); } }
        }
    }
}
